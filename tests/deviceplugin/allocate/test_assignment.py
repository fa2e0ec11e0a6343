"""Records are followed or refused; no container starts on a card where too little is free."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from deviceplugin.allocate.assignment import RunningPod, check_fits, choose_share, recorded_share
from deviceplugin.kubelet.messages import RefusedError
from halfcard import names
from halfcard.placing.card_usage import CardMode, CardUse
from halfcard.placing.layouts import Layout
from halfcard.placing.node_usage import Share
from halfcard.placing.records import PlacedPod, write
from tests.builders import pod
from tests.halfcard.placing.examples import CARD_MIB, DIALECTS, facts, node

SHARE: Final = pod().asks(core=30, memory=20)
TWO: Final = node(2)
RECORD: Final = names.PLACEMENT


def placed(*cards: int) -> dict[str, str]:
    needs = facts(SHARE).demand.needs
    return write(PlacedPod(TWO, ("containers-0",), needs, (cards,)), 1, DIALECTS)


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
    assert choose_share(facts(SHARE), TWO, others) == Share(
        ((1,),), {1: CardUse(CardMode.SHARED, 30, 5120, 0)}, recorded=False
    )
    assert choose_share(facts(SHARE), TWO, []).layout == ((0,),)


def test_a_pod_without_a_record_gets_no_unhealthy_card() -> None:
    sick = replace(TWO, cards=(replace(TWO.cards[0], why_not="Xid 79"), TWO.cards[1]))
    assert choose_share(facts(SHARE), sick, []).layout == ((1,),)


def test_a_pod_without_a_record_that_does_not_fit_is_refused() -> None:
    with pytest.raises(RefusedError, match="without a record of its cards, and the node's cards have no room"):
        choose_share(facts(pod().asks(gpu=2)), TWO, [facts(SHARE, "other", placed(0))])


def test_an_invalid_pod_is_refused_with_admissions_message() -> None:
    with pytest.raises(RefusedError, match="HC002"):
        choose_share(facts(pod().asks(core=150, memory=1)), TWO, [])


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
    with pytest.raises(RefusedError, match=rf"pod team/p: card 0 \(GPU-0\) {words}; kubelet tries again"):
        check_fits("team/p", TWO, {"GPU-0": CardUse(CardMode.SHARED, 30, 5120, 0)}, others)


def test_a_pod_does_not_start_on_an_unhealthy_recorded_card() -> None:
    sick = replace(TWO, cards=(replace(TWO.cards[0], why_not="Xid 79"), TWO.cards[1]))
    check_fits("team/p", sick, {"GPU-1": CardUse(CardMode.SHARED, 30, 5120, 0)}, [])
    with pytest.raises(RefusedError, match=r"card 0 \(GPU-0\) is out of order: Xid 79; kubelet tries again"):
        check_fits("team/p", sick, {"GPU-0": CardUse(CardMode.SHARED, 30, 5120, 0)}, [])
