"""Formats usage for people: two tables in 100 columns, first the cards, then their containers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from halfcard.columns import WIDTH, columns
from halfcard.problems import printable

from .usage_report import CardUsage, ContainerUsage, IsolationState, NodeUsageReport, PartUsage, UnaccountedProcess

CARD_HEADS: Final = ("CARD", "MODEL", "MODE", "CORES % USED/GIVEN", "MEMORY MiB USED/GIVEN/TOTAL")
CONTAINER_HEADS: Final = ("CONTAINER", "CARD", "CORES % USED/GIVEN", "MEMORY MiB USED/GIVEN", "PROCESSES")
_MOST_PIDS: Final = 3
_CELL_CHARS: Final = 200


def usage_text(usage: NodeUsageReport) -> str:
    lines = [*_wrapped(_title(usage)), *columns([CARD_HEADS, *map(card_row, usage.cards)], right=(3, 4))]
    lines += [line for card in usage.cards for line in remarks(card)]
    lines += _isolation(usage.isolation)
    if usage.containers:
        lines += ["", *columns([CONTAINER_HEADS, *container_rows(usage.containers)], right=(2, 3))]
    lines += [line for each in usage.containers for part in each.cards for line in _held(each, part)]
    return "\n".join(lines) + "\n"


def _title(usage: NodeUsageReport) -> str:
    number = f"{len(usage.cards)} card{'' if len(usage.cards) == 1 else 's'}"
    return f"{usage.node}: {number}" + (", all made up" if usage.is_made_up else "")


def card_row(card: CardUsage) -> tuple[str, ...]:
    return (
        str(card.index),
        printable(card.model, _CELL_CHARS),
        str(card.mode),
        f"{known(card.used_cores)}/{card.cores}",
        f"{known(card.used_mib)}/{card.memory_mib}/{known(card.total_mib)}",
    )


def known(amount: int | None) -> str:
    return "?" if amount is None else str(amount)


def remarks(card: CardUsage) -> Iterator[str]:
    """Yields the problems of a card."""
    if card.why_not:
        yield from _wrapped(f"card {card.index} gets nothing new: {card.why_not}")
    for process in card.strangers:
        yield from _wrapped(f"card {card.index}: {_words(process)}")


def _isolation(state: IsolationState) -> list[str]:
    """Returns why shares are not held where they should be."""
    return _wrapped(f"isolation is {state.mode}, and shares are not held: {state.why_not}") if state.why_not else []


def _words(process: UnaccountedProcess) -> str:
    whose = f"to pod {process.pod}, which was not granted the card" if process.pod else "to no pod"
    return f"process {process.pid} uses {process.memory_mib} MiB: it belongs {whose}"


def _wrapped(text: str) -> list[str]:
    safe = printable(text, 5 * WIDTH)
    return textwrap.wrap(safe, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def container_rows(containers: Iterable[ContainerUsage]) -> Iterator[tuple[str, ...]]:
    for each in containers:
        for part in each.cards:
            yield (
                printable(each.title, 3 * _CELL_CHARS),
                str(part.card),
                f"{part.used_cores}/{part.cores}",
                f"{part.used_mib}/{part.memory_mib}",
                _pids(part.pids),
            )


def _held(container: ContainerUsage, part: PartUsage) -> Iterator[str]:
    """Yields what a container that is held says of a card."""
    if (account := part.account) is not None:
        waited = f"launches waited {account.throttled_ms} ms for its cores"
        said = f"{account.memory_mib} MiB in its account, {account.refused} allocations refused, {waited}"
        yield from _wrapped(f"{container.title} is held on card {part.card}: {said}")


def _pids(pids: Sequence[int]) -> str:
    shown = ",".join(map(str, pids[:_MOST_PIDS]))
    return shown + (f" and {len(pids) - _MOST_PIDS} more" if len(pids) > _MOST_PIDS else "")
