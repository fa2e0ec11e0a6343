from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfcard import names
from halfcard.cards import Node
from halfcard.placing.card_usage import CardMode, CardRoom, untouched
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import best
from halfcard.placing.node_usage import Bound, NodeUsage, usage_of_pods, with_pod, without_pod
from halfcard.placing.records import NOT_UNDERSTOOD
from halfcard.placing.room import Room, empty_room
from tests.builders import pod

from .examples import CARD_MIB, askings, bound, demand, demand_of, demands, facts, node, nodes, unrecorded

SHARE: Final[dict[str, Any]] = {"core": 30, "memory": 20}
TWO: Final = node(2)


def modes(holding: NodeUsage) -> list[str]:
    return [str(left.mode) for left in holding.room.left]


def test_a_node_without_pods_is_empty() -> None:
    assert usage_of_pods(TWO, ()).room == empty_room(TWO)


def test_a_pod_uses_the_cards_of_its_record() -> None:
    holding = usage_of_pods(TWO, [bound(demand(**SHARE), ((1,),), TWO)])
    assert holding.room.left == (untouched(TWO.cards[0]), CardRoom(CardMode.SHARED, 70, CARD_MIB - 5120, 0))
    assert holding.shares["u"].layout == ((1,),) and holding.shares["u"].recorded
    assert holding.doubts == ()


def test_a_pod_without_a_record_counts_by_its_claim_on_the_likeliest_card() -> None:
    pods = [bound(demand(**SHARE), ((1,),), TWO, "a"), unrecorded(demand(**SHARE), "b")]
    holding = usage_of_pods(TWO, pods)
    assert holding.shares["b"].layout == ((1,),) and not holding.shares["b"].recorded
    assert holding.doubts == ()


def test_records_count_before_guesses() -> None:
    """The guess came first, and would have taken the only card that the record names."""
    pods = [unrecorded(demand(gpu=1), "a"), bound(demand(**SHARE), ((0,),), TWO, "b")]
    assert modes(usage_of_pods(TWO, pods)) == ["shared", "exclusive"]


def test_a_cordoned_card_keeps_its_pods() -> None:
    pods = [unrecorded(demand(sgpu=1), "a"), unrecorded(demand(gpu=1), "b")]
    cordoned = replace(TWO, cards=(replace(TWO.cards[0], why_not="cordoned"), TWO.cards[1]))
    before, after = usage_of_pods(TWO, pods), usage_of_pods(cordoned, pods)
    assert after.room.left == before.room.left and after.shares == before.shares
    assert after.room.cards == cordoned.cards and after.room.usable == (1,)


def test_pods_use_cpu_and_memory_too() -> None:
    asked = [Demand((), cpu_milli=1500, memory_mib=100), demand(**SHARE)._replace(cpu_milli=500, memory_mib=28)]
    room = usage_of_pods(TWO, [unrecorded(each, str(number)) for number, each in enumerate(asked)]).room
    assert (room.cpu_milli, room.memory_mib) == (TWO.cpu_milli - 2000, TWO.memory_mib - 128)


def test_an_overcommitted_card_has_nothing_free_and_is_reported() -> None:
    pods = [bound(demand(core=60, memory=1), ((0,),), TWO, uid) for uid in "ab"]
    holding = usage_of_pods(TWO, pods)
    assert holding.room.left == (CardRoom(CardMode.SHARED, 0, 0, 0), untouched(TWO.cards[1]))
    assert holding.doubts == ("pod team/b on node n1: card 0 has less left than the pod uses of it",)


def test_a_pod_without_a_record_that_does_not_fit_takes_the_card_with_most_left() -> None:
    pods = [
        bound(demand(core=80, memory=1), ((0,),), TWO, "a"),
        bound(demand(core=70, memory=1), ((1,),), TWO, "b"),
        unrecorded(demand(core=40, memory=1), "c"),
    ]
    holding = usage_of_pods(TWO, pods)
    assert [left.cores for left in holding.room.left] == [20, 0]
    assert holding.doubts[0].startswith("pod team/c on node n1: it has no usable record of its cards, and")


@pytest.mark.parametrize("words", [{"core": 30, "memory": 87}, {"gpu": 3}, {"sgpu": 3}, {"core": 200_000_000}])
def test_a_pod_that_requests_more_than_a_card_has_uses_nothing(words: dict[str, Any]) -> None:
    holding = usage_of_pods(TWO, [unrecorded(demand(**words))])
    assert holding.room.left == empty_room(TWO).left and holding.shares == {}
    assert holding.doubts == (
        "pod team/u on node n1: it has no usable record of its cards, and asks for more than cards have",
    )


def test_a_share_on_a_card_of_unknown_memory_blocks_the_card() -> None:
    unknown = node(2, None)
    for pods in ([unrecorded(demand(**SHARE))], [bound(demand(**SHARE), ((0,),), unknown)]):
        room = usage_of_pods(unknown, pods).room
        assert room.left == (CardRoom(CardMode.SHARED, 0, 0, 0), untouched(unknown.cards[1]))


def test_a_node_with_unknown_cards_has_no_usage_and_no_doubts() -> None:
    holding = usage_of_pods(Node("n1"), [unrecorded(demand(gpu=1))])
    assert holding.room.left == () and holding.doubts == ()


# --- implausible records ---------------------------------------------------------------------------------------------

OURS: Final = names.PLACEMENT
C0: Final = "containers-0"
ODD: Final[dict[str, tuple[dict[str, Any], dict[str, str], str]]] = {
    "an index below 0": (SHARE, {OURS: f'{{"node":"n1","cards":{{"{C0}":["-1"]}}}}'}, 'does not have: "-1"'),
    "an index beyond the cards": (SHARE, {OURS: f'{{"node":"n1","cards":{{"{C0}":["99"]}}}}'}, 'does not have: "99"'),
    "another node": (SHARE, {OURS: f'{{"node":"n2","cards":{{"{C0}":["0"]}}}}'}, "cannot be understood"),
    "another container": (SHARE, {OURS: '{"node":"n1","cards":{"c":["0"]}}'}, "cannot be understood"),
    "10 MB": (SHARE, {OURS: "x" * 10_000_000}, "cannot be understood"),
    "10 MB of JSON": (SHARE, {OURS: '{"node":"n1","cards":{"c":["%s"]}}' % ("0" * 10_000_000)}, "cannot be understood"),
    "no JSON": (SHARE, {OURS: "GPU-0"}, "cannot be understood"),
    "other JSON": (SHARE, {OURS: '{"node":1}'}, "cannot be understood"),
    "JSON without end": (SHARE, {OURS: '{"node":"n1","x":' + "[" * 200_000}, "cannot be understood"),
    "nothing": (SHARE, {OURS: ""}, "cannot be understood"),
    "one half of two": ({"sgpu": 2}, {OURS: f'{{"node":"n1","cards":{{"{C0}":["0"]}}}}'}, "cannot be understood"),
    "two halves of one card": ({"sgpu": 2}, {OURS: f'{{"node":"n1","cards":{{"{C0}":["0","0"]}}}}'}, "twice"),
    "a card by two names": ({"gpu": 2}, {OURS: f'{{"node":"n1","cards":{{"{C0}":["1","GPU-1"]}}}}'}, "twice"),
    "a shared card twice": (
        {"gpu": 2, "gpumem": 10},
        {OURS: f'{{"node":"n1","cards":{{"{C0}":["1","1"]}}}}'},
        "twice",
    ),
    "a list without end": (
        SHARE,
        {OURS: f'{{"node":"n1","cards":{{"{C0}":[{",".join(["0"] * 5000)}]}}}}'},
        "cannot be understood",
    ),
    "text that steers a terminal": (
        SHARE,
        {OURS: f'{{"node":"n1","cards":{{"{C0}":["\\u001b[2J\\n"]}}}}'},
        'does not have: "\\x1b[2J\\n"',
    ),
    "gpu-manager: an index below 0": (
        SHARE,
        {"tencent.com/predicate-node": "n1", "tencent.com/predicate-gpu-idx-0": "-1"},
        'does not have: "-1"',
    ),
    "gpu-manager: another node": (
        SHARE,
        {"tencent.com/predicate-node": "n2", "tencent.com/predicate-gpu-idx-0": "1"},
        "cannot be understood",
    ),
    "gpu-manager: no index": (SHARE, {"tencent.com/predicate-node": "n1"}, "cannot be understood"),
    "gpushare: an index below 0": ({"gpu_mem": 3}, {"ALIYUN_COM_GPU_MEM_IDX": "-1"}, 'does not have: "-1"'),
    "gpushare: 10 MB": ({"gpu_mem": 3}, {"ALIYUN_COM_GPU_MEM_IDX": "0," * 5_000_000}, "cannot be understood"),
    "volcano: too many": ({"gpu_number": 1}, {"volcano.sh/gpu-index": "0,1"}, "cannot be understood"),
}


@pytest.mark.parametrize(("words", "annotations", "why"), ODD.values(), ids=ODD)
def test_an_invalid_record_is_reported_and_affects_only_its_own_pod(
    words: dict[str, Any], annotations: dict[str, str], why: str
) -> None:
    odd = facts(pod("u").asks(**words), "u", annotations).bound()
    neighbour = bound(demand(**SHARE), ((1,),), TWO, "a")
    holding = usage_of_pods(TWO, [odd, neighbour])
    assert holding.shares["a"] == usage_of_pods(TWO, [neighbour]).shares["a"]
    assert holding.room == usage_of_pods(TWO, [odd._replace(named=None), neighbour]).room
    doubts = [doubt for doubt in holding.doubts if "its record" in doubt]
    assert len(doubts) == 1 and doubts[0].startswith("pod team/u on node n1: its record") and why in doubts[0]
    assert all(doubt.isprintable() and len(doubt) < 300 for doubt in holding.doubts)


# --- laws -------------------------------------------------------------------------------------------------------------


FORGED_CARDS: Final = st.sampled_from(["0", "0", "2", "4", "GPU-1", "-1", "x"])


@st.composite
def crowds(draw: st.DrawFn, most: int = 5) -> tuple[Node, list[Bound]]:
    """A node with pods that the extender placed, pods without a record, and pods with a forged one."""
    where = draw(nodes())
    pods: list[Bound] = []
    for number, asked in enumerate(draw(st.lists(demands, max_size=most))):
        found = best(usage_of_pods(where, pods).room, asked, crowded)
        uid = str(number)
        if found is not None and draw(st.integers(0, 3)):
            pods.append(bound(asked, found.layout, where, uid))
            continue
        forged = st.tuples(*[st.tuples(*[FORGED_CARDS] * min(need.claim.cards, 3)) for need in asked.needs])
        pods.append(unrecorded(asked, uid)._replace(named=draw(st.none() | st.just(NOT_UNDERSTOOD) | forged)))
    return where, pods


def crowded(room: Room) -> float:
    return -float(sum(left.cores + left.mib for left in room.left))


@settings(max_examples=150)
@given(crowds(), st.randoms(use_true_random=False))
def test_a_room_does_not_depend_on_the_order_of_its_pods(crowd: tuple[Node, list[Bound]], dice: random.Random) -> None:
    where, pods = crowd
    before = usage_of_pods(where, pods)
    dice.shuffle(pods)
    assert usage_of_pods(where, pods) == before


@settings(max_examples=150)
@given(crowds())
def test_free_amounts_never_exceed_the_card(crowd: tuple[Node, list[Bound]]) -> None:
    where, pods = crowd
    holding = usage_of_pods(where, pods)
    for at, (card, left) in enumerate(zip(where.cards, holding.room.left, strict=True)):
        tenants = [share.uses[at] for share in holding.shares.values() if at in share.uses]
        assert (left.mode is CardMode.FREE) is (not tenants)
        assert 0 <= left.cores <= 100 and 0 <= left.mib <= (card.memory_mib or 0) and left.parts >= 0
        if left.mode is not CardMode.FREE and left != CardRoom(left.mode, 0, 0, 0):
            assert left.cores == 100 - sum(use.cores for use in tenants)
            assert left.mib == (card.memory_mib or 0) - sum(use.mib for use in tenants)
            assert {use.mode for use in tenants} == {left.mode}


@settings(max_examples=200)
@given(crowds(most=4), askings(most=3))
def test_removing_a_pod_restores_the_usage_from_before(crowd: tuple[Node, list[Bound]], asking: Any) -> None:
    where, pods = crowd
    before = usage_of_pods(where, pods)
    found = best(before.room, asking.demand, crowded)
    if found is None:
        return
    newcomer = bound(asking.demand, found.layout, where, "z")
    assert usage_of_pods(where, [*pods, newcomer]).shares["z"].layout == found.layout
    assert usage_of_pods(where, pods) == before


@settings(max_examples=150)
@given(st.data())
def test_a_layout_uses_what_it_promised(data: st.DataObject) -> None:
    """The record is written and read back, and gives the same room."""
    where = data.draw(nodes())
    pods: list[Bound] = []
    room = empty_room(where)
    for number, needed in enumerate(data.draw(st.lists(demands, max_size=5))):
        asked = needed._replace(cpu_milli=100, memory_mib=7)
        found = best(room, asked, crowded)
        if found is not None:
            pods.append(bound(asked, found.layout, where, str(number)))
            room = found.room
            holding = usage_of_pods(where, pods)
            assert holding.room == room and holding.doubts == ()
            assert holding.shares[str(number)].uses == found.uses


def test_containers_of_one_pod_are_counted_together() -> None:
    asked = demand_of(pod().asks(**SHARE).asks(core=40, memory=20).init(core=90, memory=10))
    holding = usage_of_pods(TWO, [bound(asked, ((0,), (0,), (0,)), TWO)])
    assert holding.room.left[0] == CardRoom(CardMode.SHARED, 10, CARD_MIB - 40 * 256, 0)


@settings(max_examples=200)
@given(crowds())
def test_an_incremental_change_equals_a_full_count(crowd: tuple[Node, list[Bound]]) -> None:
    node, pods = crowd
    for number, each in enumerate(pods):
        others = [*pods[:number], *pods[number + 1 :]]
        assert with_pod(usage_of_pods(node, others), node, each) in (None, usage_of_pods(node, pods))
        assert without_pod(usage_of_pods(node, pods), node, each) in (None, usage_of_pods(node, others))


def test_an_incremental_change_with_records_equals_a_full_count() -> None:
    pods = [bound(demand(**SHARE), ((at,),), TWO, uid) for at, uid in ((0, "a"), (0, "b"), (1, "c"))]
    assert with_pod(usage_of_pods(TWO, pods[:2]), TWO, pods[2]) == usage_of_pods(TWO, pods)
    assert without_pod(usage_of_pods(TWO, pods), TWO, pods[0]) == usage_of_pods(TWO, pods[1:])


def test_a_share_of_zero_keeps_its_card_shared() -> None:
    tiny = replace(TWO, cards=tuple([replace(card, memory_mib=50) for card in TWO.cards]))
    pods = [bound(demand(gpu=1, gpumem_percentage=1), ((0,),), tiny, uid) for uid in "ab"]
    assert usage_of_pods(tiny, pods).room.left[0] == CardRoom(CardMode.SHARED, 100, 50, 0)
    assert without_pod(usage_of_pods(tiny, pods), tiny, pods[0]) == usage_of_pods(tiny, pods[1:])
    assert without_pod(usage_of_pods(tiny, pods[1:]), tiny, pods[1]) == usage_of_pods(tiny, [])


def test_an_incremental_change_with_unknown_card_memory_equals_a_full_count() -> None:
    unknown = replace(TWO, cards=tuple([replace(card, memory_mib=None) for card in TWO.cards]))
    pods = [bound(demand(**SHARE), ((0,),), unknown, uid) for uid in "ab"]
    assert usage_of_pods(unknown, pods).is_certain
    assert without_pod(usage_of_pods(unknown, pods), unknown, pods[0]) is None
