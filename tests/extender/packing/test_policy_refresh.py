"""A new leader expects the pods that the previous leader expected, from its first answer on."""

from __future__ import annotations

from extender.packing.policy_cache import PolicyCache
from extender.packing.policy_refresh import PolicyRefresh
from extender.packing.workload_mix import PodClass
from extender.packing.workload_stats import WorkloadStats
from extender.scheduler_api.answer_cache import AnswerCache
from halfcard.placing.pod_facts import read_facts
from tests.builders import pod

from ..populated import node, state_of, stored

ONLY_HALVES = PodClass(0, 0, 1, 50)


def test_ranks_are_computed_again_after_a_takeover() -> None:
    before, after = WorkloadStats(), WorkloadStats()
    for _ in range(5000):
        before.count(ONLY_HALVES)
    state = state_of(
        [node("gpu1", 2), node("gpu2", 2)], [stored(pod("a").asks(core=40, memory=8), on="gpu1", cards=["gpu1-0"])]
    )
    policies = PolicyCache("default", after.mix, state)
    answers = AnswerCache(state, policies.policy)
    refresh = PolicyRefresh(state, answers.policy_changed, after, policies, before.notes, lambda: True)
    wanted = read_facts(stored(pod("new").asks(core=30, memory=8)), state.dialects).demand

    def ranks() -> list[float]:
        return answers.ranked(wanted).ranks(["gpu1", "gpu2"])

    before_takeover = ranks()
    refresh.load()
    expected = AnswerCache(state, PolicyCache("default", before.mix, state).policy).ranked(wanted)
    assert ranks() == expected.ranks(["gpu1", "gpu2"])
    assert ranks() != before_takeover
