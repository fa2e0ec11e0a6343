"""Writes the Events of the node: cards that fail and recover, and what is not offered, with the reason.

Invariant: an Event is repeated after half an hour at the earliest, not at every check.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from halfcard import names
from halfcard.api_paths import path_of_events
from halfcard.capacity import ImplausibleError
from halfcard.cards import Card
from halfcard.events import NOWHERE, event, moment, once
from halfcard.inventory import read_inventory

from .announcement import card_title

EVENTS_PATH: Final = path_of_events(NOWHERE)

_AGAIN_AFTER_S: Final = 1800.0
_MOST_REMEMBERED: Final = 200


class NodeEvent(NamedTuple):
    reason: str
    message: str
    is_warning: bool = True


def not_offered_events(sentences: Iterable[str]) -> list[NodeEvent]:
    """Events for resources, or parts of the time-slicing configuration, that are not offered."""
    return [NodeEvent("NotOffered", sentence) for sentence in sentences]


def offered_again_events(events: Iterable[NodeEvent]) -> list[NodeEvent]:
    """Events for what is offered again: `halfcard doctor` relies on the last one."""
    return [NodeEvent("Offered", each.message, is_warning=False) for each in events]


def card_events(before: str | None, after: str | None) -> list[NodeEvent]:
    """Compares two inventories of the node; a new card is reported only if it is unhealthy."""
    known = {card.index: card for card in _cards(before)}
    return [*_changes(known, _cards(after))] if after is not None else []


def _changes(known: Mapping[int, Card], cards: Iterable[Card]) -> Iterator[NodeEvent]:
    for card in cards:
        was = known[card.index].why_not if card.index in known else ""
        if card.why_not and card.why_not != was:
            yield NodeEvent("CardFailed", f"{card_title(card)} gets nothing new: {card.why_not}")
        elif was and not card.why_not:
            yield NodeEvent("CardRecovered", f"{card_title(card)} is in order again; before: {was}", is_warning=False)


def _cards(inventory: str | None) -> tuple[Card, ...]:
    try:
        return read_inventory(inventory).cards if inventory is not None else ()
    except ImplausibleError:
        return ()


class RecentEvents:
    """The Events that were sent lately."""

    def __init__(self) -> None:
        self._when: OrderedDict[NodeEvent, float] = OrderedDict()

    def forget(self, events: Iterable[NodeEvent]) -> None:
        """Forgets Events, so that they are sent when they happen again."""
        for each in events:
            self._when.pop(each, None)

    def due(self, events: Iterable[NodeEvent], now: float) -> list[NodeEvent]:
        """Returns the Events that were not sent lately, and marks them as sent."""
        found = []
        for each in dict.fromkeys(events):
            if now - self._when.get(each, -_AGAIN_AFTER_S) >= _AGAIN_AFTER_S:
                self._when[each] = now
                self._when.move_to_end(each)
                found.append(each)
        while len(self._when) > _MOST_REMEMBERED:
            self._when.popitem(last=False)
        return found


def node_event(node: Mapping[str, Any], reported: NodeEvent, now: datetime) -> bytes:
    """Builds an Event with a unique name, so that sending it twice creates it once."""
    metadata = node["metadata"]
    name = metadata["name"]
    one_of_many = hashlib.sha256(f"{moment(now)}{reported}".encode()).hexdigest()[:16]
    return event(
        {"apiVersion": "v1", "kind": "Node", "name": name, "uid": metadata.get("uid", "")},
        {"name": f"{name[:200]}.{one_of_many}"},
        {"component": names.AGENT, "host": name},
        once(reported.reason, reported.message, now),
        is_warning=reported.is_warning,
    )
