"""Records are followed or refused; no container starts on a card where too little is free."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.allocate.assignment import RunningPod, check_fits, choose_share, recorded_share
from deviceplugin.kubelet.messages import RefusedError
from halfcard import names
from halfcard.cards import Node
from halfcard.placing.card_usage import CardMode, CardUse
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import Layout
from halfcard.placing.node_usage import Share
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import PlacedPod, RecordWriter, write
from tests.builders import PodBuilder, pod
from tests.halfcard.placing.examples import CARD_MIB, DIALECTS, demand, demands, facts, node, nodes

SHARE: Final = pod().asks(core=30, memory=20)
ONE: Final = node(1)
TWO: Final = node(2)
FOUR: Final = node(4)
RECORD: Final = names.PLACEMENT


def placed(*cards: int) -> dict[str, str]:
    needs = facts(SHARE).demand.needs
    return write(PlacedPod(TWO, ("containers-0",), needs, (cards,)), 1, DIALECTS, by=RecordWriter.EXTENDER)


def layout(found: Share | None) -> Layout | None:
    return found and found.layout


def test_recorded_cards_are_used() -> None:
    assert layout(recorded_share(facts(SHARE, annotations=placed(1)), TWO)) == ((1,),)


def test_cards_recorded_by_another_system_are_used() -> None:
    by_gpu_manager = {key: text for key, text in placed(1).items() if key != RECORD}
    assert by_gpu_manager and layout(recorded_share(facts(SHARE, annotations=by_gpu_manager), TWO)) == ((1,),)


def test_a_missing_record_is_none() -> None:
    assert recorded_share(facts(SHARE), TWO) is None


ODD: Final = {
    "no JSON": ({RECORD: "GPU-0"}, "cannot be understood"),
    "another node": ({RECORD: '{"node":"n2","cards":{"containers-0":["GPU-0"]}}'}, "cannot be understood"),
    "another container": ({RECORD: '{"node":"n1","cards":{"c":["GPU-0"]}}'}, "cannot be understood"),
    "a card of another node": ({RECORD: '{"node":"n1","cards":{"containers-0":["GPU-9"]}}'}, 'does not have: "GPU-9"'),
}


@pytest.mark.parametrize(("annotations", "words"), ODD.values(), ids=ODD)
def test_an_impossible_record_is_refused_and_not_replaced_by_a_guess(annotations: dict[str, str], words: str) -> None:
    with pytest.raises(RefusedError, match=words):
        recorded_share(facts(SHARE, annotations=annotations), TWO)


def test_a_record_that_names_a_card_twice_is_refused() -> None:
    record = '{"node":"n1","cards":{"containers-0":["GPU-0","GPU-0"]}}'
    with pytest.raises(RefusedError, match="names a card twice"):
        recorded_share(facts(pod().asks(gpu=2), annotations={RECORD: record}), TWO)


def test_a_pod_without_a_record_gets_free_cards() -> None:
    others = [facts(pod().asks(core=80, memory=20), "other", placed(0))]
    assert choose_share(facts(SHARE), TWO, others, []) == Share(
        ((1,),), {1: CardUse(CardMode.SHARED, 30, 5120, 0)}, recorded=False
    )
    assert choose_share(facts(SHARE), TWO, [], []).layout == ((0,),)


def test_a_pod_without_a_record_gets_no_unhealthy_card() -> None:
    sick = replace(TWO, cards=(replace(TWO.cards[0], why_not="Xid 79"), TWO.cards[1]))
    assert choose_share(facts(SHARE), sick, [], []).layout == ((1,),)


def test_a_pod_without_a_record_that_does_not_fit_is_refused() -> None:
    with pytest.raises(RefusedError, match="without a record of its cards, and the node's cards have no room"):
        choose_share(facts(pod().asks(gpu=2)), TWO, [facts(SHARE, "other", placed(0))], [])


def test_an_invalid_pod_is_refused_with_admissions_message() -> None:
    with pytest.raises(RefusedError, match="HC002"):
        choose_share(facts(pod().asks(core=150, memory=1)), TWO, [], [])


def four(*used: int) -> list[PodFacts]:
    """A pod on each of four cards, with these cores."""
    return [recorded(pod().asks(core=cores, memory=8), f"on-{at}", FOUR, ((at,),)) for at, cores in enumerate(used)]


def recorded(asking: PodBuilder, uid: str, where: Node, laid: Layout) -> PodFacts:
    without = facts(asking, uid)
    placed = PlacedPod(where, without.containers, without.demand.needs, laid)
    return facts(asking, uid, write(placed, 1, DIALECTS, by=RecordWriter.EXTENDER))


def test_of_pods_bound_by_counts_those_that_fit_start_and_only_the_last_is_refused() -> None:
    waiting = [facts(pod(name).asks(core=30, memory=8), name) for name in "abcd"]
    found = [choose_share(each, FOUR, four(90, 60, 60, 60), waiting).layout for each in waiting[:3]]
    assert found == [((1,),), ((2,),), ((3,),)]
    with pytest.raises(RefusedError, match=r"no room for it beside .* first \(team/a, team/b, team/c\); del"):
        choose_share(waiting[3], FOUR, four(90, 60, 60, 60), waiting)


def test_a_younger_pod_starts_where_an_older_one_does_not_fit() -> None:
    large, small = facts(pod().asks(core=50, memory=8), "a"), facts(SHARE, "b")
    assert choose_share(small, FOUR, four(90, 60, 60, 60), [large, small]).layout == ((1,),)


def test_a_pod_that_can_never_start_keeps_no_other_from_starting() -> None:
    invalid, valid = facts(pod().asks(core=150, memory=1), "a"), facts(pod().asks(core=100), "b")
    assert choose_share(valid, ONE, [], [invalid, valid]).layout == ((0,),)


@given(st.data())
def test_the_same_pods_start_on_the_same_cards_in_any_order_of_calls(data: st.DataObject) -> None:
    waiting = [asking(f"{number}", each) for number, each in enumerate(data.draw(st.lists(demands, max_size=5)))]
    assert_same_cards(data.draw(nodes(most_cards=4)), waiting, data.draw(st.permutations(waiting)))


def test_a_pod_that_starts_early_draws_no_older_one_to_its_card() -> None:
    """By a rule that prefers cards in use, the two pods of 20 and 50 would leave no card for the last one."""
    waiting = [asking(str(cores), demand(core=cores, memory=1)) for cores in (20, 50, 40, 30, 60)]
    waiting = [replace(each, created=str(number)) for number, each in enumerate(waiting)]
    assert_same_cards(TWO, waiting, [waiting[2], *waiting[:2], *waiting[3:]])


def assert_same_cards(where: Node, waiting: list[PodFacts], starts: list[PodFacts]) -> None:
    together = {each.uid: choice(each, where, [], waiting) for each in waiting}
    holding: list[PodFacts] = []
    for each in starts:
        found = choice(each, where, holding, waiting)
        assert found == together[each.uid]
        if found is not None:
            waiting = [other for other in waiting if other is not each]
            placed = PlacedPod(where, each.containers, each.demand.needs, found)
            annotations = write(placed, 1, DIALECTS, by=RecordWriter.AGENT)
            holding.append(replace(each, owned=annotations))


def asking(uid: str, asked: Demand) -> PodFacts:
    containers = tuple([f"c{number}" for number, _ in enumerate(asked.needs)])
    return replace(facts(SHARE, uid), demand=asked, containers=containers)


def choice(each: PodFacts, where: Node, holding: list[PodFacts], waiting: list[PodFacts]) -> Layout | None:
    try:
        return choose_share(each, where, holding, waiting).layout
    except RefusedError:
        return None


def test_a_pod_starts_on_a_card_with_enough_left() -> None:
    others = [RunningPod(f"team/{name}", {"GPU-0": CardUse(CardMode.SHARED, 35, 5120, 0)}) for name in "ab"]
    check_fits("team/p", TWO, {"GPU-0": CardUse(CardMode.SHARED, 30, 5120, 0)}, others)


HELD: Final = {
    "cores": (
        [CardUse(CardMode.SHARED, 80, 5120, 0)],
        "is used by containers of team/0, .* 20 % of its cores and 16896 MiB",
    ),
    "whole": ([CardUse(CardMode.EXCLUSIVE, 100, CARD_MIB, 0)], "is used by containers of team/0, .* leave too little"),
    "halves": (
        [CardUse(CardMode.HALVES, 0, 0, 1)],
        "is used by containers of team/0, which still run and leave too little",
    ),
    "more than there is": (
        [CardUse(CardMode.SHARED, 60, 1, 0)] * 2,
        "is used by containers of team/0, team/1, which still run and leave too little",
    ),
}


@pytest.mark.parametrize(("uses", "words"), HELD.values(), ids=HELD)
def test_a_pod_does_not_start_on_a_card_with_too_little_left(uses: list[CardUse], words: str) -> None:
    others = [RunningPod(f"team/{number}", {"GPU-0": use}) for number, use in enumerate(uses)]
    with pytest.raises(RefusedError, match=rf"pod team/p: card 0 \(GPU-0\) {words}; delete the pod to have it"):
        check_fits("team/p", TWO, {"GPU-0": CardUse(CardMode.SHARED, 30, 5120, 0)}, others)


def test_a_pod_does_not_start_on_an_unhealthy_recorded_card() -> None:
    sick = replace(TWO, cards=(replace(TWO.cards[0], why_not="Xid 79"), TWO.cards[1]))
    check_fits("team/p", sick, {"GPU-1": CardUse(CardMode.SHARED, 30, 5120, 0)}, [])
    with pytest.raises(RefusedError, match=r"card 0 \(GPU-0\) is out of order: Xid 79; kubelet tries again"):
        check_fits("team/p", sick, {"GPU-0": CardUse(CardMode.SHARED, 30, 5120, 0)}, [])
