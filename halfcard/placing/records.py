"""Writes and reads the record of chosen cards: our own annotation, and those of other systems.

Invariant: a record names cards and never amounts, which come from the pod's immutable spec. It counts only on a pod
that is bound to the node that the record names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Final

import msgspec

from .. import names
from ..cards import Card, Node
from ..claims import Need
from ..dialects import ALL, Dialects
from ..dialects.record import NOT_UNDERSTOOD, Named, PlacedPod, Reader
from ..problems import MOST_ANNOTATED
from .layouts import Layout

__all__ = [
    "BY_AGENT",
    "NOT_UNDERSTOOD",
    "TIME_SUFFIXES",
    "Named",
    "PlacedPod",
    "RecordWriter",
    "name_of",
    "positions",
    "read",
    "recorder",
    "write",
]


class RecordWriter(StrEnum):
    """Who wrote our record: the extender at bind, or the agent for a pod that was bound without the extender."""

    EXTENDER = "extender"
    AGENT = "agent"


_OURS: Final = "Halfcard"
BY_AGENT: Final = f"{_OURS}'s {RecordWriter.AGENT}"
"""What `recorder` returns for a record that the agent wrote."""


class _Record(msgspec.Struct, omit_defaults=True):
    node: str
    cards: dict[str, list[str]]
    by: str = ""


_RECORD: Final = msgspec.json.Decoder(_Record)

_RECORDS: Final = [dialect.record for dialect in ALL if dialect.record is not None]
_BY_SYSTEM: Final = dict.fromkeys((record.system, record.read) for record in _RECORDS)
_CHOSEN_BY_AGENTS: Final = dict.fromkeys((record.system, record.chosen) for record in _RECORDS if record.chosen)
TIME_SUFFIXES: Final = tuple([record.time for record in _RECORDS if record.time])
"""How the keys of annotations with the time of a record end."""


def write(placed: PlacedPod, now_ns: int, dialects: Dialects, *, by: RecordWriter) -> dict[str, str]:
    """Returns all annotations of a record: our own, and those of the systems in whose words the pod is written."""
    written = {names.PLACEMENT: _own(placed, by)}
    for dialect in dialects.table:
        if dialect.record is not None and (known := placed.apps(dialect.name)):
            written |= dialect.record.write(placed, known, now_ns)
    return written


def read(annotations: Mapping[str, str], node: str, containers: Sequence[str], needs: Sequence[Need]) -> Named | None:
    """Returns the cards of each need by the first complete record; None where no record exists."""
    found = _read(annotations, node, containers, needs)
    return None if found is None else found[1]


def recorder(annotations: Mapping[str, str], node: str, containers: Sequence[str], needs: Sequence[Need]) -> str:
    """Returns who wrote the record that counts: our process, or another system; empty where no record is complete."""
    found = _read(annotations, node, containers, needs)
    if found is None or found[0] != _OURS:
        return "" if found is None else found[0]
    record = _decoded(annotations[names.PLACEMENT])
    return f"{_OURS}'s {record.by}" if record is not None and record.by in frozenset(RecordWriter) else _OURS


def _read(
    annotations: Mapping[str, str], node: str, containers: Sequence[str], needs: Sequence[Need]
) -> tuple[str, Named] | None:
    own: Reader = partial(_read_own, containers)
    is_written = False
    for system, reader in (*_CHOSEN_BY_AGENTS, (_OURS, own), *_BY_SYSTEM):
        named = reader(annotations, node, needs)
        if named is not None and _is_whole(named, needs):
            return system, named
        is_written = is_written or named is not None
    return ("", NOT_UNDERSTOOD) if is_written else None


def positions(named: Named, node: Node) -> Layout | None:
    """Returns the positions of the named cards; None where the node lacks one of them."""
    where = {str(card.index): at for at, card in enumerate(node.cards)}
    where |= {card.uuid: at for at, card in enumerate(node.cards) if card.uuid}
    found = tuple(tuple(where.get(name, -1) for name in cards) for cards in named)
    return None if any(at < 0 for cards in found for at in cards) else found


def _is_whole(found: Named, needs: Sequence[Need]) -> bool:
    return len(found) == len(needs) and all(
        len(cards) == need.claim.cards for cards, need in zip(found, needs, strict=True)
    )


def name_of(card: Card) -> str:
    return card.uuid or str(card.index)


def _own(placed: PlacedPod, by: RecordWriter) -> str:
    cards = {name: [name_of(card) for card in placed.cards(number)] for number, name in enumerate(placed.containers)}
    return msgspec.json.encode(_Record(placed.node.name, cards, by)).decode()


def _read_own(
    containers: Sequence[str], annotations: Mapping[str, str], node: str, _needs: Sequence[Need]
) -> Named | None:
    text = annotations.get(names.PLACEMENT)
    if text is None:
        return None
    record = _decoded(text)
    if record is None or record.node != node:
        return NOT_UNDERSTOOD
    return tuple([tuple(record.cards.get(name, ())) for name in containers])


def _decoded(text: str) -> _Record | None:
    try:
        return _RECORD.decode(text) if len(text) <= MOST_ANNOTATED else None
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None
