from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings

from halfcard import names
from halfcard.cards import Card
from halfcard.placing.card_usage import CardMode, CardRoom
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import Layout, best, fits, fits_where, peaks
from halfcard.placing.room import Room, empty_room
from halfcard.pod.card_preferences import CardPreferences
from tests.builders import PodBuilder, pod

from .every_way import every_way, is_way
from .examples import CARD_MIB, Asking, askings, demand, demand_of, node, room, rooms


def fullest(tried: Room) -> float:
    """A policy that keeps cards idle."""
    return sum(1000.0 if left.mode is CardMode.FREE else -left.cores - left.mib / CARD_MIB for left in tried.left)


def emptiest(tried: Room) -> float:
    return -fullest(tried)


def layout(found: Room, asked: Demand) -> Layout | None:
    laid = best(found, asked, fullest)
    return None if laid is None else laid.layout


SHARE: Final[dict[str, Any]] = {"core": 30, "memory": 20}
MIXED: Final = room(4, CARD_MIB, (0, {"sgpu": 1}), (1, SHARE), (2, {"gpu": 1}))

ONE_CONTAINER: Final[dict[str, tuple[Room, dict[str, Any], Layout | None]]] = {
    "a share fills a card that is shared already": (MIXED, SHARE, ((1,),)),
    "a share that no used card has left opens another": (MIXED, {"core": 80, "memory": 20}, ((3,),)),
    "a share larger than any card": (MIXED, {"core": 30, "memory": 87}, None),
    "60 free per cent on two cards are no 60 on one": (
        room(2, CARD_MIB, (0, {"core": 70, "memory": 1}), (1, {"core": 70, "memory": 1})),
        {"core": 60, "memory": 1},
        None,
    ),
    "memory alone counts by memory": (room(1, CARD_MIB, (0, {"tuya_memory": 80})), {"tuya_memory": 7}, None),
    "compute is free where only memory is asked": (
        room(1, CARD_MIB, (0, {"core": 99, "memory": 1})),
        {"gpu_mem": 3},
        ((0,),),
    ),
    "a whole card is an unused one": (MIXED, {"gpu": 1}, ((3,),)),
    "two whole cards where one is idle": (MIXED, {"core": 200}, None),
    "volcano's whole cards": (room(4, CARD_MIB, (1, {"gpu_memory": 5})), {"gpu_number": 3}, ((0, 2, 3),)),
    "a half closes a card that is halved already": (MIXED, {"sgpu": 1}, ((0,),)),
    "two halves are of two cards": (MIXED, {"sgpu": 2}, ((0, 3),)),
    "two halves left on one card are not two of two cards": (
        room(2, CARD_MIB, (0, {"gpu": 1})),
        {"sgpu": 2},
        None,
    ),
    "hami: MiB and cores on each of two cards": (
        room(3, CARD_MIB, (1, {"core": 80, "memory": 1})),
        {"gpu": 2, "gpumem": 3000, "gpucores": 30},
        ((0, 2),),
    ),
    "hami: a part of the memory of a card as large as it is": (
        room(1, CARD_MIB, (0, {"gpu": 1, "gpumem_percentage": 51})),
        {"gpu": 1, "gpumem_percentage": 50},
        None,
    ),
    "hami: both halves by per cent": (
        room(1, CARD_MIB, (0, {"gpu": 1, "gpumem_percentage": 50})),
        {"gpu": 1, "gpumem_percentage": 50},
        ((0,),),
    ),
    "hami: all cores of a card keep others away": (
        room(2, CARD_MIB, (0, {"core": 1, "memory": 1})),
        {"gpu": 1, "gpucores": 100},
        ((1,),),
    ),
    "a share of a card of unknown memory": (room(2, None), SHARE, None),
    "a whole card of unknown memory": (room(2, None), {"gpu": 2}, ((0, 1),)),
    "cards of NVIDIA's are slices where they are sold so": (
        room(2, CARD_MIB, slices=names.NVIDIA_GPU, replicas=4),
        {"gpu": 3},
        ((0, 0, 0),),
    ),
    "slices of all cards together": (
        room(2, CARD_MIB, (0, {"gpu": 1}), slices=names.NVIDIA_GPU, replicas=4),
        {"gpu": 7},
        ((0, 0, 0, 1, 1, 1, 1),),
    ),
    "one slice too many": (room(2, CARD_MIB, (0, {"gpu": 1}), slices=names.NVIDIA_GPU, replicas=4), {"gpu": 8}, None),
    "slices under a name of their own": (
        room(2, CARD_MIB, (0, {"gpu_shared": 4}), slices=names.NVIDIA_GPU_SHARED, replicas=8),
        {"gpu_shared": 1},
        ((0,),),
    ),
    "whole cards beside slices of another name": (
        room(2, CARD_MIB, (0, {"gpu_shared": 1}), slices=names.NVIDIA_GPU_SHARED, replicas=8),
        {"gpu": 1},
        ((1,),),
    ),
}


@pytest.mark.parametrize(("found", "words", "expected"), ONE_CONTAINER.values(), ids=ONE_CONTAINER)
def test_the_layout_of_one_container(found: Room, words: dict[str, Any], expected: Layout | None) -> None:
    assert layout(found, demand(**words)) == expected


TWO: Final = room(2)
SEVERAL: Final[dict[str, tuple[Room, PodBuilder, Layout | None]]] = {
    "containers share a card when their sum fits": (TWO, pod().asks(**SHARE).asks(core=60, memory=60), ((0,), (0,))),
    "and lie on two where it does not": (TWO, pod().asks(core=60, memory=20).asks(core=50, memory=20), ((0,), (1,))),
    "one stands back for the other: two distinct shares and a whole card": (
        room(3, CARD_MIB, (1, SHARE), (2, SHARE)),
        pod().asks(gpu=2, gpumem=1000, gpucores=30).asks(core=100),
        ((1, 2), (0,)),
    ),
    "two halves by two containers are one card": (TWO, pod().asks(sgpu=1).asks(sgpu=1), ((0,), (0,))),
    "an init container has the card that its successor will have": (
        TWO,
        pod().init(core=100).asks(**SHARE),
        ((0,), (0,)),
    ),
    "an init container that asks for as much as an app container has its card": (
        TWO,
        pod().init(**SHARE).asks(**SHARE).asks(core=80, memory=21),
        ((0,), (1,), (0,)),
    ),
    "as many of one resource are enough": (
        TWO,
        pod().init(core=30, memory=60).asks(core=30, memory=20).asks(core=80, memory=20),
        ((0,), (1,), (0,)),
    ),
    "an init container cannot have the cards of two": (
        TWO,
        pod().init(core=100, memory=20).asks(core=100).asks(core=60, memory=20),
        None,
    ),
    "a sidecar that runs already has no predecessor": (
        TWO,
        pod().sidecar(core=80, memory=20).init(core=80, memory=21).asks(core=10, memory=22),
        ((0,), (0,), (1,)),
    ),
    "init containers of a kind have one card": (
        room(2, CARD_MIB, (0, {"core": 20, "memory": 1})),
        pod().init(core=90, memory=5).init(core=90, memory=6),
        ((1,), (1,)),
    ),
    "an init container runs beside the sidecars before it": (
        room(1),
        pod().sidecar(core=60, memory=1).init(core=50, memory=1),
        None,
    ),
    "and not beside those after it": (room(1), pod().init(core=50, memory=1).sidecar(core=60, memory=1), ((0,), (0,))),
    "cards with as much left are not alike when a sidecar runs on one of them": (
        room(2, CARD_MIB, (1, {"core": 10, "memory": 1})),
        pod().sidecar(core=70, memory=11).init(core=40, memory=2).asks(core=60, memory=10),
        ((1,), (0,), (1,)),
    ),
    "a container without a claim does not count": (TWO, pod().asks(cpu=1).asks(**SHARE).asks(), ((0,),)),
}


@pytest.mark.parametrize(("found", "asking", "expected"), SEVERAL.values(), ids=SEVERAL)
def test_the_layout_of_the_containers_of_a_pod(found: Room, asking: PodBuilder, expected: Layout | None) -> None:
    assert layout(found, demand_of(asking)) == expected
    assert fits(found, demand_of(asking)) is (expected is not None)


def test_a_pod_without_claims_fits_anywhere() -> None:
    laid = best(MIXED, Demand((), cpu_milli=1000, memory_mib=10), fullest)
    assert laid is not None and laid.layout == () and laid.uses == {}
    assert laid.room.left == MIXED.left and laid.room.cpu_milli == MIXED.cpu_milli - 1000


def test_unhealthy_cards_get_no_containers() -> None:
    cards = tuple(replace(card, why_not="cordoned" if card.index else "") for card in node(3).cards)
    found = empty_room(replace(node(3), cards=cards))
    assert layout(found, demand(**SHARE)) == ((0,),)
    assert not fits(found, demand(gpu=2))


WANTS: Final = {
    "a model": (CardPreferences(models=("t4",)), ((1,),)),
    "not a model": (CardPreferences(not_models=("a10", "l4")), ((1,),)),
    "a card": (CardPreferences(uuids=("GPU-2", "GPU-9")), ((2,),)),
    "not a card": (CardPreferences(not_uuids=("GPU-0", "GPU-1")), ((2,),)),
    "a card, and not that card": (CardPreferences(uuids=("GPU-1",), not_uuids=("GPU-1",)), None),
    "a model without cards": (CardPreferences(models=("h100",)), None),
}


@pytest.mark.parametrize(("wanted", "expected"), WANTS.values(), ids=WANTS)
def test_only_preferred_cards_are_used(wanted: CardPreferences, expected: Layout | None) -> None:
    models = ("NVIDIA A10", "Tesla-T4", "NVIDIA L4")
    cards = tuple(Card(at, model, CARD_MIB, f"GPU-{at}") for at, model in enumerate(models))
    found = empty_room(replace(node(3), cards=cards))
    assert layout(found, Demand(demand(gpu=1).needs, wanted)) == expected


LINKED: Final = tuple(
    replace(card, links=tuple((other, 50 if abs(other - card.index) == 2 else 1) for other in range(4)))
    for card in node(4).cards
)
"""0 with 2, and 1 with 3."""

TWO_SHARES: Final[dict[str, Any]] = {"gpu": 2, "gpucores": 30, "gpumem": 1000}
NO_FIRST: Final = (replace(LINKED[0], why_not="ill"), *LINKED[1:])

CONNECTED: Final[dict[str, tuple[tuple[Card, ...], list[int], dict[str, Any], Layout]]] = {
    "whole cards": (LINKED, [], {"gpu": 2}, ((0, 2),)),
    "whole cards of those in order": (NO_FIRST, [], {"gpu": 2}, ((1, 3),)),
    "shares": (LINKED, [], TWO_SHARES, ((0, 2),)),
    "halves": (LINKED, [], {"sgpu": 2}, ((0, 2),)),
    "shares, beside others": (LINKED, [1, 2, 3], TWO_SHARES, ((1, 3),)),
    "shares, where one card is better than all others": (LINKED, [3], TWO_SHARES, ((1, 3),)),
    "shares, where two cards are better, however connected": (LINKED, [2, 3], TWO_SHARES, ((2, 3),)),
    "three shares, of which one is sure": (LINKED, [2], TWO_SHARES | {"gpu": 3}, ((0, 1, 2),)),
}


@pytest.mark.parametrize(("cards", "used", "words", "expected"), CONNECTED.values(), ids=CONNECTED)
def test_among_equal_cards_the_best_connected_are_used(
    cards: tuple[Card, ...], used: list[int], words: dict[str, Any], expected: Layout
) -> None:
    idle = empty_room(replace(node(4), cards=cards))
    left = [partly_used(each) if at in used else each for at, each in enumerate(idle.left)]
    assert layout(idle.after(tuple(left)), demand(**words)) == expected


def partly_used(left: CardRoom) -> CardRoom:
    return left._replace(mode=CardMode.SHARED, cores=left.cores - 10, mib=left.mib - 500)


def test_among_several_models_the_policy_chooses_the_whole_cards() -> None:
    cards = tuple([replace(card, model="A100" if card.index < 2 else "T4") for card in node(4).cards])

    def keeps_a100(tried: Room) -> float:
        return sum(left.cores for card, left in zip(tried.cards, tried.left, strict=True) if card.model == "A100")

    laid = best(empty_room(replace(node(4), cards=cards)), demand(gpu=2), keeps_a100)
    assert laid is not None and laid.layout == ((2, 3),)


def test_a_pod_that_is_hard_to_place_is_refused_in_time() -> None:
    asking = pod()
    for number in range(600):
        asking = asking.asks(core=1 + number % 99, memory=1 + number % 3)
    assert not fits(room(8), demand_of(asking))
    assert not fits(room(8), demand(gpu_shared=100_000))


def test_an_impossible_layout_has_no_usage() -> None:
    assert peaks(TWO, demand(sgpu=2), ((0, 0),)) is None
    assert peaks(TWO, demand(gpu=2), ((1, 1),)) is None
    assert peaks(TWO, demand_of(pod().asks(sgpu=1).asks(core=30, memory=1)), ((0,), (0,))) is None
    sliced = room(2, CARD_MIB, slices=names.NVIDIA_GPU, replicas=4)
    assert peaks(sliced, demand(gpu=2), ((0, 0),)) == {0: (CardMode.SLICES, 0, 0, 2)}


# --- laws -------------------------------------------------------------------------------------------------------------


@settings(max_examples=250)
@given(rooms(), askings(most=2))
def test_a_layout_is_found_exactly_if_there_is_one(found: Room, asking: Asking) -> None:
    there_is_one = next(every_way(found, asking), None) is not None
    assert fits(found, asking.demand) is there_is_one
    for rate in (fullest, emptiest):
        assert (best(found, asking.demand, rate) is not None) is there_is_one


@settings(max_examples=250)
@given(rooms(), askings(most=3))
def test_a_shared_decision_for_many_nodes_is_that_of_each_node(found: Room, asking: Asking) -> None:
    assert fits_where(asking.demand, found.slices)(found) is fits(found, asking.demand)


@settings(max_examples=150)
@given(rooms(most_cards=4), askings(most=4, least=3))
def test_a_layout_is_found_for_pods_with_more_containers(found: Room, asking: Asking) -> None:
    laid = best(found, asking.demand, fullest)
    assert fits(found, asking.demand) is (laid is not None)
    if laid is not None:
        assert is_way(found, asking, laid.layout)


@settings(max_examples=150)
@given(rooms(most_cards=4), askings(most=3))
def test_a_layout_is_valid_and_leaves_the_rest_free(found: Room, asking: Asking) -> None:
    laid = best(found, asking.demand, fullest)
    if laid is None:
        return
    assert is_way(found, asking, laid.layout)
    assert peaks(found, asking.demand, laid.layout) == laid.uses
    for at, (card, before, after) in enumerate(zip(found.cards, found.left, laid.room.left, strict=True)):
        use = laid.uses.get(at)
        if use is None:
            assert after == before
        else:
            assert after.mode is use.mode
            assert (before.cores - after.cores, before.mib - after.mib) == (use.cores, use.mib)
            assert after.cores >= 0 and after.mib >= 0 and 0 <= after.parts <= max(2, card.replicas)


@given(rooms(most_cards=4))
def test_a_room_counts_its_free_amounts(found: Room) -> None:
    usable = [(card, left) for card, left in zip(found.cards, found.left, strict=True) if not card.why_not]
    assert found.counted.idle == [left.mode for _, left in usable].count(CardMode.FREE)
    assert found.usable == tuple(at for at, card in enumerate(found.cards) if not card.why_not)
    shareable = [
        CardRoom(*left)
        for card, left in usable
        if card.memory_mib is not None and left.mode in (CardMode.FREE, CardMode.SHARED) and not card.not_held
    ]
    assert set(found.counted.shares) <= {(left.cores, left.mib) for left in shareable}
    for left in shareable:
        assert any(left.cores <= cores and left.mib <= mib for cores, mib in found.counted.shares)
