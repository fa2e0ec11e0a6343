"""Writes and reads the record of chosen cards: our own annotation, and those of other systems.

Invariant: a record names cards and never amounts, which come from the pod's immutable spec. It counts only on a pod
that is bound to the node that the record names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from .. import names
from ..cards import Card, Node
from ..pod.stored_pod import MOST_ANNOTATED
from .demand import Need
from .layouts import Layout
from .peer_records import (
    read_aliyun,
    read_assigned,
    read_predicate,
    read_volcano,
    write_aliyun,
    write_predicate,
    write_volcano,
)
from .placed_pod import NOT_UNDERSTOOD, Named, PlacedPod

__all__ = ["NOT_UNDERSTOOD", "Named", "PlacedPod", "name_of", "positions", "read", "write"]


class _Record(msgspec.Struct):
    node: str
    cards: dict[str, list[str]]


_RECORD: Final = msgspec.json.Decoder(_Record)


def write(placed: PlacedPod, now_ns: int, prefixes: Mapping[str, str]) -> dict[str, str]:
    """All annotations for a Binding; `prefixes` are the domains of gpu-manager's resources by dialect."""
    written = {names.PLACEMENT: _own(placed)}
    for dialect, prefix in prefixes.items():
        written |= write_predicate(placed, placed.apps(dialect), prefix, now_ns)
    written |= write_aliyun(placed, now_ns)
    written |= write_volcano(placed, now_ns)
    return written


def read(annotations: Mapping[str, str], node: str, containers: Sequence[str], needs: Sequence[Need]) -> Named | None:
    """The cards of each need, by whichever system wrote them down completely; None where none wrote anything."""
    is_written = False
    for reader in _READERS:
        named = reader(annotations, node, containers, needs)
        if named is not None and _is_whole(named, needs):
            return named
        is_written = is_written or named is not None
    return NOT_UNDERSTOOD if is_written else None


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


def _own(placed: PlacedPod) -> str:
    cards = {name: [name_of(card) for card in placed.cards(number)] for number, name in enumerate(placed.containers)}
    return msgspec.json.encode(_Record(placed.node.name, cards)).decode()


def _read_own(
    annotations: Mapping[str, str], node: str, containers: Sequence[str], _needs: Sequence[Need]
) -> Named | None:
    text = annotations.get(names.PLACEMENT)
    if text is None:
        return None
    try:
        record = _RECORD.decode(text) if len(text) <= MOST_ANNOTATED else None
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        record = None
    if record is None or record.node != node:
        return NOT_UNDERSTOOD
    return tuple([tuple(record.cards.get(name, ())) for name in containers])


_READERS: Final = (read_assigned, _read_own, read_predicate, read_aliyun, read_volcano)
