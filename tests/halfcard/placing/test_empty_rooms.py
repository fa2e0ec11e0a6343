"""Whether a pod could be placed on some node, if no other pod were there."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given

from halfcard.cards import Card, Node
from halfcard.placing.demand import Demand
from halfcard.placing.empty_rooms import could_take, empty_rooms
from halfcard.placing.layouts import fits
from halfcard.placing.room import Room
from halfcard.pod.card_preferences import CardPreferences
from tests.builders import pod

from .examples import demand, demand_of, demands, node, rooms

SHARE: Final[dict[str, Any]] = {"core": 30, "memory": 20}
NODES: Final = (node(4), node(8), Node("cpu"))
UNKNOWN: Final = (Node("n", (Card(0, "", None),)),)

CASES: Final[dict[str, tuple[tuple[Node, ...], Demand, bool]]] = {
    "a share": (NODES, demand(**SHARE), True),
    "all cards of the largest node": (NODES, demand(gpu=8), True),
    "more cards than any node has": (NODES, demand(core=1600), False),
    "more memory than any card has": (NODES, demand(core=30, memory=87), False),
    "an existing model": (NODES, demand_of(pod().asks(**SHARE), CardPreferences(models=("a10",))), True),
    "a model that no node has": (NODES, demand_of(pod().asks(**SHARE), CardPreferences(models=("h100",))), False),
    "a card that may be replaced": (NODES, demand_of(pod().asks(**SHARE), CardPreferences(uuids=("GPU-9",))), True),
    "a share of a card of unknown memory": (UNKNOWN, demand(**SHARE), True),
    "a card of unknown model": (UNKNOWN, demand_of(pod().asks(gpu=1), CardPreferences(models=("h100",))), True),
    "no cards at all": ((Node("cpu"),), demand(**SHARE), False),
}


@pytest.mark.parametrize(("nodes", "asked", "expected"), CASES.values(), ids=CASES)
def test_a_pod_could_be_taken(nodes: tuple[Node, ...], asked: Demand, expected: bool) -> None:  # noqa: FBT001
    assert could_take(empty_rooms(nodes), asked) is expected


@given(rooms(), demands)
def test_what_fits_beside_other_pods_could_be_taken(room: Room, asked: Demand) -> None:
    assert could_take(empty_rooms([Node("n", room.cards, room.slices)]), asked) or not fits(room, asked)


def test_equal_nodes_are_one_room() -> None:
    assert len(empty_rooms(node(4) for _ in range(9))) == 1
