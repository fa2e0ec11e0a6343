"""Reads nodes and pods from the tables of the public Alibaba GPU traces, in comma-separated values.

Invariant: a row is read exactly or refused with file and line; nothing is guessed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from halfcard.cards import Card, Node
from halfcard.claims import WHOLE_CARD, Claim, ContainerStage, Need, whole_cards
from halfcard.placing.demand import Demand
from halfcard.pod.card_preferences import NOTHING_WANTED, CardPreferences
from halfcard.problems import printable

from .workload import MILLI, TracePod, pod_of

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")

DIALECT: Final = "openb"
_CARD_MIB: Final = 16384
"""The tables do not contain it, and their pods request no memory of a card."""

_MAX_AMOUNT: Final = 2**53
_MAX_CARDS: Final = 64
_QUOTED_CHARS: Final = 60

T = TypeVar("T")
Row = Mapping[str, str]


class TableError(ValueError):
    """A table that cannot be read; its text begins FILE:LINE."""

    def __init__(self, file: str, line: int, what: str) -> None:
        super().__init__(f"{file}:{line}: {what}")


def read_nodes(text: str, file: str) -> tuple[Node, ...]:
    """Reads a table like openb_node_list_*.csv.

    Raises:
        TableError: at the first implausible row.
    """
    return _read(text, file, NODE_COLUMNS, _node)


def read_pods(text: str, file: str) -> tuple[TracePod, ...]:
    """Reads a table like openb_pod_list_*.csv; columns other than these and gpu_spec are ignored.

    Raises:
        TableError: at the first implausible row.
    """
    return _read(text, file, POD_COLUMNS, _pod)


def _read(text: str, file: str, wanted: Sequence[str], read: Callable[[Row], T]) -> tuple[T, ...]:
    rows = tuple(_rows(text, file, wanted))
    found: dict[str, T] = {}
    for line, row in rows:
        name = row[wanted[0]]
        try:
            thing = read(row)
        except ValueError as error:
            raise TableError(file, line, str(error)) from None
        if not name or name in found:
            raise TableError(
                file, line, f'{wanted[0]}: got "{printable(name, _QUOTED_CHARS)}"; names must be unique and not empty'
            )
        found[name] = thing
    if not found:
        raise TableError(file, 1, f"no rows; add them below the line {','.join(wanted)}")
    return tuple(found.values())


def _rows(text: str, file: str, wanted: Sequence[str]) -> Iterator[tuple[int, Row]]:
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), restval="", strict=True)
    try:
        missing = [column for column in wanted if column not in (reader.fieldnames or ())]
        if missing:
            raise TableError(file, 1, f"no column {', '.join(missing)}; the first line names {', '.join(wanted)}")
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise TableError(file, reader.line_num, f"no comma-separated values: {error}; check the quotes") from None


def _number(row: Row, column: str, most: int = _MAX_AMOUNT) -> int:
    written = row[column]
    if not (written.isascii() and written.isdecimal()) or len(written) > 16 or int(written) > most:
        raise ValueError(
            f'{column}: got "{printable(written, _QUOTED_CHARS)}"; must be a whole number from 0 to {most}'
        )
    return int(written)


def _node(row: Row) -> Node:
    cards = tuple([Card(at, row["model"], _CARD_MIB) for at in range(_number(row, "gpu", _MAX_CARDS))])
    return Node(row["sn"], cards, cpu_milli=_number(row, "cpu_milli"), memory_mib=_number(row, "memory_mib"))


def _pod(row: Row) -> TracePod:
    cards = _number(row, "num_gpu", _MAX_CARDS)
    needs = (Need(ContainerStage.APP, 0, _claim(cards, _share(row))),) if cards else ()
    models = tuple(sorted({model.lower() for model in (row.get("gpu_spec") or "").split("|") if model}))
    wanted = CardPreferences(models=models) if models else NOTHING_WANTED
    return pod_of(row["name"], Demand(needs, wanted, _number(row, "cpu_milli"), _number(row, "memory_mib")))


def _share(row: Row) -> int:
    """The share of each card in hundredths, rounded up."""
    milli = _number(row, "gpu_milli", MILLI)
    if milli == 0:
        raise ValueError('gpu_milli: got "0"; must be from 1 to 1000 for a pod with num_gpu')
    return -(-milli * WHOLE_CARD // MILLI)


def _claim(cards: int, share: int) -> Claim:
    if share == WHOLE_CARD:
        return whole_cards(cards, DIALECT)
    return Claim(cards, share, 0, exclusive=False, distinct=cards > 1, dialect=DIALECT)
