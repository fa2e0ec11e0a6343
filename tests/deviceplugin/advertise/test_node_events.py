"""Which Events the agent sends, and how often."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from deviceplugin.advertise.node_events import NodeEvent, RecentEvents, card_events, node_event
from halfcard.inventory import write_inventory

from ..nodes import GOOD, SICK, node

WELL: Final = write_inventory([GOOD, replace(SICK, why_not="")])
ILL: Final = write_inventory([GOOD, SICK])
WORSE: Final = write_inventory([GOOD, replace(SICK, why_not="Xid 48")])
FAILED: Final = NodeEvent("CardFailed", "card 1 (GPU-1) gets nothing new: Xid 79: it has fallen off the bus")

NEWS: Final = {
    "a card fails": (WELL, ILL, [FAILED]),
    "it comes back": (
        ILL,
        WELL,
        [
            NodeEvent(
                "CardRecovered",
                "card 1 (GPU-1) is in order again; before: Xid 79: it has fallen off the bus",
                is_warning=False,
            )
        ],
    ),
    "it fails in another way": (ILL, WORSE, [NodeEvent("CardFailed", "card 1 (GPU-1) gets nothing new: Xid 48")]),
    "nothing": (ILL, ILL, []),
    "the agent starts and finds it so": (None, ILL, [FAILED]),
    "the agent starts, and all are well": (None, WELL, []),
    "another writer has broken the inventory": ("[{", ILL, [FAILED]),
    "the cards are unknown": (ILL, None, []),
}


@pytest.mark.parametrize(("before", "after", "expected"), NEWS.values(), ids=NEWS)
def test_cards_that_fail_or_recover_give_events(
    before: str | None, after: str | None, expected: list[NodeEvent]
) -> None:
    assert card_events(before, after) == expected


def test_the_same_event_is_sent_once_in_half_an_hour() -> None:
    recent_events = RecentEvents()
    assert recent_events.due([FAILED, FAILED], 0) == [FAILED]
    assert recent_events.due([FAILED], 1799) == []
    assert recent_events.due([FAILED], 1800) == [FAILED]
    assert recent_events.due([FAILED], 1801) == []


def test_the_memory_of_sent_events_is_bounded() -> None:
    recent_events = RecentEvents()
    for number in range(1000):
        recent_events.due([NodeEvent("NotOffered", str(number))], number)
    assert recent_events.due([NodeEvent("NotOffered", "999")], 1000) == []
    assert recent_events.due([NodeEvent("NotOffered", "0")], 1000) != []


def test_an_event_is_about_the_node_and_has_a_unique_name() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    written = json.loads(node_event(node(), FAILED, now))
    assert written["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}
    assert (written["type"], written["reason"], written["message"]) == ("Warning", *FAILED[:2])
    assert written["firstTimestamp"] == "2026-11-21T12:00:00Z"
    assert node_event(node(), FAILED, now) == node_event(node(), FAILED, now)
    other = json.loads(node_event(node(), FAILED._replace(message="x" * 5000), now))
    assert other["metadata"]["name"] != written["metadata"]["name"]
    assert len(other["message"]) == 1000
