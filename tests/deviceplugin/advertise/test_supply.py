"""The totals that a node advertises: the numbers of each system's documents, and no bound pod is ever rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deviceplugin.advertise.supply import MOST_IDS, SLOTS, OfferRules, Supply, held_only, supply
from halfcard import names
from halfcard.cards import Card, Node
from halfcard.dialects import ALL, Dialects
from halfcard.dialects.aliyun import Aliyun
from halfcard.dialects.hami import HAMI_WORDS
from halfcard.placing.layouts import best
from halfcard.placing.node_totals import offers
from halfcard.placing.node_usage import Bound, usage_of_pods
from halfcard.placing.room import Room, empty_room
from halfcard.pod.spec import CONTAINERS, INIT_CONTAINERS
from tests.builders import PodBuilder, pod
from tests.halfcard.placing.examples import HAMI, WRITTEN, bound, demand_of, facts, node, nodes

TUYA_UNITS: Final = names.TUYA + names.VCUDA_MEMORY_SUFFIX
EVERYTHING: Final = tuple(sorted(offers(ALL)))
MIXED: Final = (names.NVIDIA_GPU, names.TUYA_SGPU, TUYA_UNITS)
T4: Final = node(4, 15109)


def serving(*resources: str, aliyun_unit_mib: int = 1024, hami_split: int = 1) -> OfferRules:
    return OfferRules(resources, in_unit(aliyun_unit_mib), hami_split)


def in_unit(aliyun_unit_mib: int) -> Dialects:
    """Returns all dialects with gpushare's memory in this unit."""
    return Dialects(tuple(Aliyun(aliyun_unit_mib) if isinstance(each, Aliyun) else each for each in ALL))


def offered(found: Supply) -> dict[str, int]:
    return {**found.ids, **found.status}


class Placed(NamedTuple):
    """A pod on the cards that the extender chose."""

    bound: Bound
    asks: Mapping[str, int]


def packed(room: Room) -> float:
    return sum(1000.0 if str(left.mode) == "free" else -left.cores for left in room.left)


def placed(asking: PodBuilder, where: Node, there: list[Placed], uid: str) -> Placed | None:
    demand = demand_of(asking)
    laid = best(usage_of_pods(where, [each.bound for each in there]).room, demand, packed)
    return laid and Placed(bound(demand, laid.layout, where, uid), facts(asking, uid).asks)


class Day:
    """A node on which pods are created and deleted."""

    def __init__(self, where: Node, said: OfferRules) -> None:
        self.where = where
        self.said = said
        self.pods: dict[str, Placed] = {}

    def comes(self, uid: str, **words: Any) -> None:
        came = placed(pod().asks(**words), self.where, list(self.pods.values()), uid)
        assert came is not None, "the example itself does not fit"
        self.pods[uid] = came

    def offers(self) -> Supply:
        room = usage_of_pods(self.where, [each.bound for each in self.pods.values()]).room
        return supply(room, [each.asks for each in self.pods.values()], self.said)


# --- the numbers people know ------------------------------------------------------------------------------------------


def test_four_cards_of_15109_mib_have_the_totals_of_gpu_manager() -> None:
    day = Day(T4, serving(names.VCUDA_CORE, names.VCUDA_MEMORY))
    known = {names.VCUDA_CORE: 400, names.VCUDA_MEMORY: 236}
    assert day.offers() == (known, {}, ())
    for number, (core, memory) in enumerate([(10, 4), (20, 12), (45, 40), (99, 59), (100, 59)]):
        day.comes(str(number), core=core, memory=memory)
        assert day.offers() == (known, {}, ())


def test_the_totals_of_a_mixed_node_step_by_step() -> None:
    day = Day(node(4), serving(*MIXED))

    def listing() -> tuple[int, ...]:
        return tuple(day.offers().ids[resource] for resource in MIXED)

    assert listing() == (4, 8, 344)
    day.comes("two halves", sgpu=2)
    assert listing() == (2, 8, 172)
    day.comes("a share", tuya_memory=10)
    assert listing() == (1, 6, 172)
    day.comes("a card", gpu=1)
    assert listing() == (1, 4, 86)
    for uid, after in (("a card", (1, 6, 172)), ("a share", (2, 8, 172)), ("two halves", (4, 8, 344))):
        del day.pods[uid]
        assert listing() == after


def test_volcanos_memory_is_a_status_total_with_device_ids_for_slots_and_cards() -> None:
    day = Day(node(1, 15109), serving(names.VOLCANO_GPU_MEMORY, names.VOLCANO_GPU_NUMBER))
    assert day.offers() == ({names.VOLCANO_GPU_NUMBER: 1, names.SLOT: SLOTS}, {names.VOLCANO_GPU_MEMORY: 15109}, ())
    day.comes("share", gpu_memory=2048)
    assert day.offers() == ({names.VOLCANO_GPU_NUMBER: 0, names.SLOT: SLOTS}, {names.VOLCANO_GPU_MEMORY: 15109}, ())


GPUSHARE: Final = {
    "GiB have ids": (1024, {names.ALIYUN_GPU_MEM: 4 * 14}, {}),
    "MiB have none": (1, {names.SLOT: SLOTS}, {names.ALIYUN_GPU_MEM: 4 * 15109}),
}


@pytest.mark.parametrize(("unit", "ids", "status"), GPUSHARE.values(), ids=GPUSHARE)
def test_gpushares_memory_is_advertised_in_its_unit_with_the_number_of_cards(
    unit: int, ids: dict[str, int], status: dict[str, int]
) -> None:
    found = supply(empty_room(T4), (), serving(names.ALIYUN_GPU_MEM, aliyun_unit_mib=unit))
    assert found == (ids, {**status, names.ALIYUN_GPU_COUNT: 4}, ())


SLICES: Final = {
    "under the cards' own name": (names.NVIDIA_GPU, {names.NVIDIA_GPU: 8}),
    "under another, beside whole cards": (
        names.NVIDIA_GPU_SHARED,
        {names.NVIDIA_GPU: 2, names.NVIDIA_GPU_SHARED: 8},
    ),
}


@pytest.mark.parametrize(("slices", "ids"), SLICES.values(), ids=SLICES)
def test_time_slices_are_advertised(slices: str, ids: dict[str, int]) -> None:
    room = empty_room(node(2, slices=slices, replicas=4))
    assert supply(room, (), serving(names.NVIDIA_GPU)) == (ids, {}, ())
    assert supply(room, (), serving(names.TUYA_SGPU)).ids == {names.TUYA_SGPU: 4}


def test_a_card_split_for_hami_counts_once_per_split_while_it_has_room() -> None:
    day = Day(node(4), serving(names.NVIDIA_GPU, names.TUYA_SGPU, hami_split=10))

    def cards() -> int:
        return day.offers().ids[names.NVIDIA_GPU]

    assert cards() == 40
    for uid in "abc":
        day.comes(uid, gpu=1, gpumem=4096, gpucores=10)
        assert cards() == 40
    day.comes("halves", sgpu=2)
    assert cards() == 20 + 3  # of three that are held somewhere
    day.comes("the last one", gpu=1)
    assert cards() == 10 + 4


def test_containers_beyond_the_split_of_a_card_keep_their_device_ids() -> None:
    day = Day(node(1), serving(names.NVIDIA_GPU, hami_split=2))
    for uid in "abc":
        day.comes(uid, gpu=1, gpumem=4096)
    assert day.offers().ids == {names.NVIDIA_GPU: 3}


def test_time_slices_replace_hamis_split_of_the_same_resource_and_report_it() -> None:
    found = supply(
        empty_room(node(2, slices=names.NVIDIA_GPU, replicas=4)), (), serving(names.NVIDIA_GPU, hami_split=10)
    )
    assert found.ids == {names.NVIDIA_GPU: 8}
    (problem,) = found.problems
    assert problem.startswith("hami_device_split: got 10") and "set renameByDefault" in problem


def test_a_resource_of_a_disabled_domain_is_not_advertised() -> None:
    said = OfferRules((names.VCUDA_CORE, names.NVIDIA_GPU), Dialects.named(["tuya-vcuda", "nvidia"]))
    assert supply(empty_room(T4), (), said).ids == {names.NVIDIA_GPU: 4}


# --- cards out of order -----------------------------------------------------------------------------------------------


def test_of_an_unhealthy_card_only_the_used_part_is_advertised() -> None:
    healthy, sick = T4.cards[0], replace(T4.cards[1], why_not="Xid 79")
    day = Day(replace(T4, cards=(healthy, sick)), serving(*EVERYTHING))
    assert offered(day.offers())[names.VCUDA_CORE] == 100
    day.where = replace(T4, cards=T4.cards[:2])
    for uid in "ab":
        day.comes(uid, sgpu=2)
    day.where = replace(T4, cards=(healthy, sick))
    assert offered(day.offers())[names.TUYA_SGPU] == 4
    del day.pods["b"]
    assert offered(day.offers())[names.TUYA_SGPU] == 3  # two are held, one is free on the healthy card
    assert offered(day.offers())[names.VCUDA_CORE] == 0


# --- what another plugin gave -----------------------------------------------------------------------------------------


def test_while_the_free_cards_are_unknown_only_used_resources_are_advertised() -> None:
    day = Day(T4, serving(names.VCUDA_CORE, names.ALIYUN_GPU_MEM, names.VOLCANO_GPU_MEMORY))
    day.comes("theirs", core=30, memory=20)
    found = held_only(day.offers(), [placed.asks for placed in day.pods.values()], "drain the node")
    assert found.ids == {names.VCUDA_CORE: 30, names.ALIYUN_GPU_MEM: 0, names.SLOT: SLOTS}
    assert found.status == {names.VOLCANO_GPU_MEMORY: 0, names.ALIYUN_GPU_COUNT: 4}
    assert found.problems == ("drain the node",)


# --- too many ids -----------------------------------------------------------------------------------------------------


def eight(memory_mib: int) -> Node:
    return Node("n1", tuple(Card(at, "H200", memory_mib, f"GPU-{at}") for at in range(8)))


def test_resources_with_too_many_device_ids_are_not_advertised_for_a_reason() -> None:
    found = supply(empty_room(eight(143771)), (), serving(names.VCUDA_CORE, TUYA_UNITS, names.TUYA_SGPU))
    assert found.ids == {names.VCUDA_CORE: 800, names.TUYA_SGPU: 16}
    (problem,) = found.problems
    assert "tuya.com/vcuda-memory, which has 4488 device ids on this node, and 5304 with the others" in problem
    assert "at most 4000" in problem and "name fewer resources" in problem


def test_memory_units_need_no_device_ids_on_a_node_with_large_cards() -> None:
    known = serving(names.VCUDA_CORE, names.VCUDA_MEMORY)
    expected = Supply({names.VCUDA_CORE: 800}, {names.VCUDA_MEMORY: 8 * (143771 // 256)}, ())
    assert supply(empty_room(eight(143771)), (), known) == expected
    small = supply(empty_room(eight(81920)), (), known)
    assert small == Supply({names.VCUDA_CORE: 800, names.VCUDA_MEMORY: 8 * (81920 // 256)}, {}, ())
    alone = replace(known, resources=(names.VCUDA_MEMORY,))
    assert supply(empty_room(eight(143771)), (), alone).status == {}


def test_an_omitted_resource_stays_omitted_when_cards_are_used_or_unhealthy() -> None:
    said = serving(names.VCUDA_MEMORY, names.TUYA_SGPU)
    ill = replace(eight(143771), cards=tuple(replace(card, why_not="ill") for card in eight(143771).cards))
    assert supply(empty_room(ill), (), said).ids == {names.TUYA_SGPU: 0}
    day = Day(eight(143771), said)
    day.comes("halves", sgpu=8)
    assert day.offers().ids == {names.TUYA_SGPU: 16}


def test_a_used_resource_is_not_withdrawn() -> None:
    day = Day(eight(143771), serving(names.VCUDA_CORE, TUYA_UNITS))
    day.comes("from before", tuya_memory=20)
    assert day.offers().ids == {names.VCUDA_CORE: 800, TUYA_UNITS: 20}


# --- laws -------------------------------------------------------------------------------------------------------------

SIDECAR: Final[dict[str, Any]] = {"restartPolicy": "Always"}
STAGES: Final[st.SearchStrategy[tuple[str, dict[str, Any]]]] = st.sampled_from(
    [(CONTAINERS, {}), (CONTAINERS, {}), (INIT_CONTAINERS, {}), (INIT_CONTAINERS, SIDECAR)]
)
UNITS: Final = st.sampled_from([1, 1024])


@st.composite
def pods(draw: st.DrawFn, *, hami: bool) -> PodBuilder:
    """Valid pods of one dialect, whose containers often have equal requests."""
    words = draw(st.sampled_from([WRITTEN, HAMI] if hami else [WRITTEN]))
    one = draw(words)
    found = pod()
    for field, manners in draw(st.lists(STAGES, min_size=1, max_size=3) | st.just([(CONTAINERS, {})])):
        found = found.container(field, limits=dict(draw(st.just(one) | words).amounts), **manners)
    return found


WHOLESOME: Final = st.builds(
    lambda cards, slices: node(cards, slices=slices, replicas=3),
    st.integers(1, 3),
    st.sampled_from(["", "", names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED]),
)
"""Whose cards take several."""


class Full(NamedTuple):
    where: Node
    said: OfferRules
    pods: list[Placed]


@st.composite
def full(draw: st.DrawFn) -> Full:
    """A node with pods, as kube-scheduler and the extender would place them."""
    hami = draw(st.booleans())
    where = draw(st.one_of(WHOLESOME, WHOLESOME, nodes()))
    assume(not (hami and where.slices == names.NVIDIA_GPU))
    said = serving(*EVERYTHING)
    counted = offered(supply(empty_room(where), (), said)).keys() | HAMI_WORDS
    there: list[Placed] = []
    kinds = draw(st.lists(pods(hami=hami), min_size=1, max_size=3))
    for number, asking in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=6))):
        came = placed(asking, where, there, str(number))
        there += [came] if came and came.asks.keys() <= counted else []
    return Full(where, replace(said, hami_split=max(2, most_on_a_card(there)) if hami else 1), there)


def most_on_a_card(pods: list[Placed]) -> int:
    """The largest number of containers on one card."""
    cards = Counter(card for each in pods for container in each.bound.named or () for card in container)
    return max(cards.values(), default=0)


def summed(pods: list[Placed]) -> dict[str, int]:
    """The sums that kubelet or kube-scheduler count; only the extender counts HAMi's own resources."""
    total: Counter[str] = Counter()
    for each in pods:
        total.update(each.asks)
    return {resource: amount for resource, amount in total.items() if resource not in HAMI_WORDS}


@settings(max_examples=200)
@given(full(), st.data())
def test_pods_that_were_placed_together_are_admitted_in_any_order(node: Full, data: st.DataObject) -> None:
    seen = [each for each in node.pods if data.draw(st.booleans())]
    room = usage_of_pods(node.where, [each.bound for each in seen]).room
    found = offered(supply(room, [each.asks for each in seen], node.said))
    needed = summed(node.pods)
    assert {resource: found[resource] for resource in needed if found[resource] < needed[resource]} == {}


@given(full(), UNITS, st.integers(1, 3), st.data())
def test_totals_are_never_below_the_usage_of_running_pods(
    node: Full, unit: int, split: int, data: st.DataObject
) -> None:
    """Also when their cards fail, or when more of them share a card than the settings allow."""
    ill = tuple(replace(card, why_not=data.draw(st.sampled_from(["", "ill"]))) for card in node.where.cards)
    room = usage_of_pods(replace(node.where, cards=ill), [each.bound for each in node.pods]).room
    said = replace(node.said, dialects=in_unit(unit), hami_split=split)
    found = supply(room, [each.asks for each in node.pods], said)
    assert all(offered(found)[resource] >= held for resource, held in summed(node.pods).items())
    assert sum(found.ids.values()) <= MOST_IDS
    assert found.ids.keys().isdisjoint(found.status)
