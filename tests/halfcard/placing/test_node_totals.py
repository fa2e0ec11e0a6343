"""The totals of a node through a day: the numbers of Tuya and gpu-manager."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfcard import names
from halfcard.cards import Node
from halfcard.claims import CORES, Unit
from halfcard.dialects import ALL, Dialects
from halfcard.dialects.aliyun import Aliyun
from halfcard.dialects.dialect import Dialect
from halfcard.placing.layouts import best
from halfcard.placing.node_totals import offers, slots, totals
from halfcard.placing.node_usage import usage_of_pods
from halfcard.placing.room import Room, empty_room
from tests.builders import PodBuilder, pod

from .examples import WRITTEN, Written, bound, demand_of, facts, node, room

TABLE: Final = offers(ALL)
HALVES: Final = names.TUYA_SGPU
TUYA_UNITS: Final = names.TUYA + names.VCUDA_MEMORY_SUFFIX


def packed(room: Room) -> float:
    return sum(1000.0 if str(left.mode) == "free" else -left.cores for left in room.left)


class Day:
    """A node on which pods are created and deleted."""

    def __init__(self, where: Node) -> None:
        self.where = where
        self.pods: dict[str, PodBuilder] = {}
        self.records: dict[str, Any] = {}

    def comes(self, uid: str, **words: Any) -> None:
        asked = demand_of(pod().asks(**words))
        laid = best(self.room, asked, packed)
        assert laid is not None
        self.pods[uid] = pod().asks(**words)
        self.records[uid] = bound(asked, laid.layout, self.where, uid)

    def goes(self, uid: str) -> None:
        del self.pods[uid], self.records[uid]

    @property
    def room(self) -> Room:
        return usage_of_pods(self.where, self.records.values()).room

    def offers(self, *resources: str) -> tuple[int, ...]:
        held = [facts(asking).asks for asking in self.pods.values()]
        found = totals(self.room, held, TABLE)
        return tuple(found[resource] for resource in resources)


class Quarters(Dialect):
    """A system of which one unit is a quarter of a card's cores."""

    name = "quarters"
    units: Final = {"quarter.example/gpu": Unit(CORES, 25)}


def test_cores_are_offered_in_the_unit_of_their_resource() -> None:
    found = totals(empty_room(node(2)), [], offers([*ALL, Quarters()]))
    assert (found["quarter.example/gpu"], found[names.VCUDA_CORE]) == (8, 200)


def test_the_totals_of_tuyas_mixed_node_through_a_day() -> None:
    """The totals in the document that defines halves: four cards of 86 units."""
    day = Day(node(4))
    three = (names.NVIDIA_GPU, HALVES, TUYA_UNITS)
    assert day.offers(*three) == (4, 8, 344)
    day.comes("two halves", sgpu=2)
    assert day.offers(*three) == (2, 8, 172)
    day.comes("a share", tuya_memory=20)
    assert day.offers(*three) == (1, 6, 172)
    day.comes("a card", gpu=1)
    assert day.offers(*three) == (1, 4, 86)
    day.comes("two halves more", sgpu=2)
    day.comes("a share more", tuya_memory=66)
    assert day.offers(*three) == (1, 4, 86)
    day.goes("two halves")
    day.goes("a share more")
    assert day.offers(*three) == (1, 4, 86)
    day.goes("a card")
    assert day.offers(*three) == (1, 6, 172)
    day.goes("a share")
    assert day.offers(*three) == (2, 8, 172)
    day.goes("two halves more")
    assert day.offers(*three) == (4, 8, 344)


def test_gpu_managers_totals_do_not_change_with_shares() -> None:
    day = Day(node(4, 59 * 256))
    both = (names.VCUDA_CORE, names.VCUDA_MEMORY)
    assert day.offers(*both) == (400, 236)
    for number in range(6):
        day.comes(str(number), core=45, memory=7 * number + 1)
        assert day.offers(*both) == (400, 236)
    for number in (3, 0, 5, 1, 4, 2):
        day.goes(str(number))
        assert day.offers(*both) == (400, 236)


def test_time_slices_are_advertised_for_sliced_cards() -> None:
    day = Day(node(2, slices=names.NVIDIA_GPU, replicas=4))
    assert day.offers(names.NVIDIA_GPU, names.VCUDA_CORE) == (8, 200)
    day.comes("three slices", gpu=3)
    assert day.offers(names.NVIDIA_GPU, names.VCUDA_CORE) == (8, 100)
    day.comes("a share", core=30, memory=20)
    assert day.offers(names.NVIDIA_GPU, names.VCUDA_CORE) == (4, 100)


def test_an_unhealthy_card_is_not_advertised() -> None:
    assert totals(Room((), ()), [], TABLE) == dict.fromkeys(TABLE, 0)
    ill = empty_room(Node("n", (node(1).cards[0].__class__(0, "", 256 * 86, why_not="ill"),)))
    assert totals(ill, [], TABLE) == dict.fromkeys(TABLE, 0)


def test_only_enabled_dialects_have_totals() -> None:
    assert offers(Dialects.named(["tencent", "nvidia"]).table).keys() == {
        "tencent.com/vcuda-core",
        "tencent.com/vcuda-memory",
        "nvidia.com/gpu",
    }


def test_resources_that_are_counted_in_mib_have_no_ids() -> None:
    assert names.VOLCANO_GPU_MEMORY in TABLE.keys() & Dialects().without_ids
    assert Aliyun(unit_mib=1).without_ids == {names.ALIYUN_GPU_MEM}


SLOTS: Final = {
    "all free": ([], 0, 8),
    "shared, with room": ([(0, {"gpu": 1, "gpumem": 5000}), (1, {"gpu": 1, "gpumem": 5000})], 2, 8),
    "one given whole": ([(0, {"gpu": 1})], 1, 7),
    "one full": ([(0, {"gpu": 1, "gpumem": 22016})], 1, 7),
    "one locked to halves by others": ([(0, {"sgpu": 1})], 0, 6),
    "halves, and three slots on the other cards": ([(0, {"sgpu": 1}), (1, {"gpu": 1, "gpumem": 1})], 3, 8),
    "more on a card than it is split for": ([(at, {"gpu": 1, "gpumem": 22016}) for at in range(4)], 11, 11),
}


@pytest.mark.parametrize(("uses", "held", "total"), SLOTS.values(), ids=SLOTS)
def test_slots_are_advertised_per_free_card_and_never_below_the_usage(
    uses: list[tuple[int, dict[str, Any]]], held: int, total: int
) -> None:
    assert slots(room(4, 22016, *uses), held, 2) == total


@settings(max_examples=200)
@given(st.lists(st.tuples(WRITTEN, st.booleans()), max_size=8))
def test_after_all_pods_ended_everything_is_advertised_again(arrivals: list[tuple[Written, bool]]) -> None:
    """The totals never exceed those of an empty node."""
    where = node(3)
    full = totals(empty_room(where), [], TABLE)
    pods: list[Any] = []
    held: list[dict[str, int]] = []
    for number, (written, _) in enumerate(arrivals):
        asked = demand_of(PodBuilder({}, {"containers": [_container(written)]}))
        laid = best(usage_of_pods(where, pods).room, asked, packed)
        if laid is not None:
            pods.append(bound(asked, laid.layout, where, str(number)))
            held.append(dict(written.amounts))
        offered = totals(usage_of_pods(where, pods).room, held, TABLE)
        assert all(0 <= offered[resource] <= full[resource] for resource in TABLE)
    assert totals(usage_of_pods(where, ()).room, [], TABLE) == full


def _container(written: Written) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": dict(written.amounts)}}
