"""Prints the tables of kubectl-inspect-gpushare, byte for byte, from Halfcard's state.

Columns are those of Go's tabwriter: a cell is what a tab ends, and is as wide as the widest of its column in the
lines around it that have that column too, plus two blanks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from extender.explain.inspection import CardHolder, CardInspection, NodeInspection

_BLANKS: Final = 2
_LARGEST_IN_GIB: Final = 1024
"""gpushare counts in GiB or MiB and does not say which; no card has so many GiB, and every card so many MiB."""

_NO_CARD: Final = "0/0"


class Shared:
    """A node in gpushare's units: what is recorded lies on a card, what is not is pending."""

    def __init__(self, node: NodeInspection, unit_mib: int) -> None:
        self._unit_mib = unit_mib
        self.name = node.name
        self.address = node.address or "unknown"
        self.cards = node.cards
        self.totals = [self._units(card.memory_mib.total or 0) for card in node.cards]
        self.used = [sum(self.of(pod) for pod in card.pods if pod.recorded) for card in node.cards]
        self.guessed = [pod for card in node.cards for pod in card.pods if not pod.recorded]
        self.pending = sum(self.of(pod) for pod in self.guessed)

    def _units(self, mib: int) -> int:
        return mib // self._unit_mib

    def of(self, pod: CardHolder) -> int:
        return self._units(pod.memory_mib)

    @property
    def total(self) -> int:
        return sum(self.totals)

    @property
    def used_in_all(self) -> int:
        return sum(self.used) + self.pending


def render(nodes: Iterable[NodeInspection], unit_mib: int, *, details: bool) -> str:
    shared = [Shared(node, unit_mib) for node in nodes]
    listed = [node for node in shared if node.total]
    return tabbed(_details(listed) if details else _summary(listed))


def _summary(nodes: Sequence[Shared]) -> Iterator[str]:
    cards = max((len(node.cards) for node in nodes), default=0)
    has_pending = any(node.guessed for node in nodes)
    names = "".join(f"GPU{number}(Allocated/Total)\t" for number in range(cards))
    pending = "PENDING(Allocated)\t" if has_pending else ""
    yield f"NAME\tIPADDRESS\t{names}{pending}GPU Memory({_unit(nodes)})\n"
    rows = [_row(node, cards, has_pending=has_pending) for node in nodes]
    yield from rows
    yield "-" * (len(rows[0]) + 20 if rows else 0) + "\n"
    yield "Allocated/Total GPU Memory In Cluster:\n"
    yield f"{_in_cluster(nodes)}\t\n"


def _unit(nodes: Sequence[Shared]) -> str:
    return "MiB" if nodes and max(nodes[0].totals) > _LARGEST_IN_GIB else "GiB"


def _row(node: Shared, cards: int, *, has_pending: bool) -> str:
    each = [f"{used}/{total}" for used, total in zip(node.used, node.totals, strict=True)]
    each += [_NO_CARD] * (cards - len(each))
    if has_pending:
        each.append(str(node.pending) if node.guessed else "")
    return "\t".join((node.name, node.address, *each, f"{node.used_in_all}/{node.total}")) + "\n"


def _in_cluster(nodes: Sequence[Shared]) -> str:
    used, total = sum(node.used_in_all for node in nodes), sum(node.total for node in nodes)
    return f"{used}/{total} ({_percent(used, total)}%)"


def _percent(used: int, total: int) -> int:
    return 100 * used // total if total else 0


def _details(nodes: Sequence[Shared]) -> Iterator[str]:
    rule = ""
    for node in nodes:
        rows = "".join(_pods(node))
        rule = rule or "-" * (len(rows) + 10) + "\n"
        names = "".join(f"GPU{number}(Allocated)\t" for number in range(len(node.cards)))
        pending = "Pending(Allocated)\t" if node.guessed else ""
        yield f"\nNAME:\t{node.name}\nIPADDRESS:\t{node.address}\n\n"
        yield f"NAME\tNAMESPACE\t{names}{pending}\n{rows}"
        yield f"Allocated :\t{node.used_in_all} ({_percent(node.used_in_all, node.total)}%)\t\n"
        yield f"Total :\t{node.total} \t\n{rule}"
    yield f"\n\nAllocated/Total GPU Memory In Cluster:\t{_in_cluster(nodes)}\t\n"


def _pods(node: Shared) -> Iterator[str]:
    cells = len(node.cards) + bool(node.guessed)
    seen: set[str] = set()
    for at, pod in [*_recorded(node.cards), *((cells - 1, pod) for pod in node.guessed)]:
        if pod.uid not in seen:
            seen.add(pod.uid)
            amounts = "".join(f"{node.of(pod) if cell == at else 0}\t" for cell in range(cells))
            yield f"{pod.name}\t{pod.namespace}\t{amounts}\n"


def _recorded(cards: Sequence[CardInspection]) -> Iterator[tuple[int, CardHolder]]:
    return ((at, pod) for at, card in enumerate(cards) for pod in card.pods if pod.recorded)


# --- columns as Go's tabwriter makes them ----------------------------------------------------------------------------


def tabbed(parts: Iterable[str]) -> str:
    lines = [line.split("\t") for line in "".join(parts).split("\n")]
    widths: list[list[int]] = [[] for _ in lines]
    for column in range(max(map(len, lines)) - 1):
        for block in _blocks(lines, column):
            width = max(len(lines[at][column]) for at in block) + _BLANKS
            for at in block:
                widths[at].append(width)
    return "\n".join(
        "".join(cell.ljust(width) for cell, width in zip(cells, [*wide, 0], strict=True))
        for cells, wide in zip(lines, widths, strict=True)
    )


def _blocks(lines: Sequence[Sequence[str]], column: int) -> Iterator[list[int]]:
    """Returns the runs of lines in which a tab ends the column's cell."""
    run: list[int] = []
    for at, cells in enumerate(lines):
        if len(cells) > column + 1:
            run.append(at)
        elif run:
            yield run
            run = []
    if run:
        yield run
