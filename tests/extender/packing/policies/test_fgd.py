from __future__ import annotations

import pytest
from hypothesis import given

from extender.packing.fleet import Fleet
from extender.packing.policies.fgd import FragmentationGradientDescent
from extender.packing.workload_mix import PodClass, WorkloadMix
from halfcard.placing.room import Room

from .rooms import chosen, mixes, room, rooms, share

NO_FLEET: Fleet = ()


def lost(left: list[int], kind: PodClass, model: str, cpu_milli: int) -> int:
    """As the paper says it."""
    can_host = kind.cards and kind.may_use(model) and kind.cpu_milli <= cpu_milli
    if not can_host or len([each for each in left if each >= kind.share]) < kind.cards:
        return sum(left)
    return sum(each for each in left if each < kind.share)


@given(mixes, rooms)
def test_the_value_is_the_published_fragmentation_of_typical_pods(mix: WorkloadMix, of: Room) -> None:
    policy = FragmentationGradientDescent(mix, NO_FLEET)
    left = [each.cores for each in of.left]
    typical = mix.as_seen(lambda kind: kind._replace(memory_mib=0)).common(0.95)
    by_hand = sum(weight * lost(left, kind, of.cards[0].model, of.cpu_milli) for kind, weight in typical)
    assert policy.value(of) == pytest.approx(-10 * by_hand)


def test_a_share_is_placed_where_nothing_becomes_unusable() -> None:
    policy = FragmentationGradientDescent(WorkloadMix(((PodClass(0, 0, 1, 50), 1.0),)), NO_FLEET)
    assert chosen(policy, [room(70), room(50), room(100)], share(50)) == 1


def test_close_gains_rank_alike_and_the_first_node_takes_the_pod() -> None:
    policy = FragmentationGradientDescent(WorkloadMix(()), NO_FLEET)
    assert policy.rank(0) == policy.rank(39) == 50
    assert (policy.rank(-1), policy.rank(41)) == (49, 51)
    assert policy.rank(-1e-12) == 50, "what is nothing but for rounding is nothing"


def test_fgd_does_not_adapt_to_the_cluster() -> None:
    policy = FragmentationGradientDescent(WorkloadMix(()), NO_FLEET)
    assert policy.adapted([room(0, 0)]) is policy
