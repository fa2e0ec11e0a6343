"""A remembered verdict is the verdict that would be decided now."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.policy import AdmissionPolicy
from admission.review import mutate_pod, validate_pod
from admission.rules.subject import ReviewContext, ReviewStage
from admission.verdict import Verdict
from admission.verdict_cache import VerdictCache
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.pod.spec import Pod
from tests.builders import Json, container, gpu, pod_of

from . import wild
from .judging import POLICY, TENANT, cards, changed
from .test_laws import LAW

CONTEXT: Final = ReviewContext(POLICY, NOTHING_KNOWN, "team-a", TENANT, ReviewStage.FINAL)
SHARE: Final = pod_of(gpu(), labels={"app": "train"})


class Counted(VerdictCache):
    """Counts the decisions."""

    def __init__(self) -> None:
        super().__init__(self._decide_and_count)
        self.times = 0

    def _decide_and_count(self, read: Pod, context: ReviewContext) -> Verdict:
        self.times += 1
        return validate_pod(read, context)


def read(obj: Json) -> Pod:
    return msgspec.convert(obj, Pod)


def named(obj: Json, name: str) -> Json:
    """Returns one of many pods of a template, with its owner and its token volume."""
    volume = {"name": f"token-{name}", "projected": {"sources": []}}
    result = changed(changed(obj, "metadata", "name", to=name), "spec", "volumes", to=[volume])
    return changed(result, "metadata", "ownerReferences", to=[{"kind": "Job", "name": "train", "uid": name}])


def test_pods_of_one_template_are_judged_once() -> None:
    decided = Counted()
    verdicts = {decided(read(named(SHARE, f"train-{number}")), CONTEXT) for number in range(20)}
    assert verdicts == {validate_pod(read(SHARE), CONTEXT)}
    assert decided.times == 1


@pytest.mark.parametrize(
    ("obj", "context"),
    [
        (changed(SHARE, "metadata", "labels", "app", to="other"), CONTEXT),
        (changed(SHARE, "metadata", "annotations", to={names.ASK_POLICY: "x"}), CONTEXT),
        (changed(SHARE, "spec", "hostPID", to=True), CONTEXT),
        (changed(SHARE, "spec", "containers", 0, "resources", "limits", names.VCUDA_CORE, to=30), CONTEXT),
        (SHARE, CONTEXT._replace(namespace="team-b")),
        (SHARE, CONTEXT._replace(user="bob")),
        (SHARE, CONTEXT._replace(policy=AdmissionPolicy(default_core_limit=False))),
        (SHARE, CONTEXT._replace(cluster=cards(4096))),
    ],
)
def test_everything_that_a_rule_may_look_at_is_part_of_the_key(obj: Json, context: ReviewContext) -> None:
    decided = Counted()
    decided(read(SHARE), CONTEXT)
    assert decided(read(obj), context) == validate_pod(read(obj), context)
    assert decided.times == 2


def test_a_changed_cluster_makes_verdicts_invalid() -> None:
    decided = VerdictCache(validate_pod)
    assert decided(read(SHARE), CONTEXT).allowed
    assert not decided(read(SHARE), CONTEXT._replace(cluster=cards(4096))).allowed
    assert decided(read(SHARE), CONTEXT).allowed


@pytest.mark.parametrize(
    ("obj", "context"),
    [
        (pod_of(container(env=[{"name": "A", "value": "x" * 10_000}])), CONTEXT),
        (SHARE, CONTEXT._replace(user="x" * 10_000)),
        (SHARE, CONTEXT._replace(cluster=cards(4096))),  # refused, with a long message
    ],
)
def test_long_pods_and_refusals_are_not_remembered(obj: Json, context: ReviewContext) -> None:
    decided = Counted()
    assert decided(read(obj), context) == decided(read(obj), context) == validate_pod(read(obj), context)
    assert decided.times == 2
    assert decided.known == {}


def test_the_number_of_verdicts_is_limited() -> None:
    decided = Counted()
    for number in range(5000):
        assert decided(read(pod_of(container(), labels={"n": str(number)})), CONTEXT).allowed
    assert 0 < len(decided.known) <= 1000


users = st.sampled_from([TENANT, "system:node:n1"])


@LAW
@given(st.lists(wild.pods(), min_size=1, max_size=4), st.sampled_from(wild.POLICIES), users)
def test_a_remembered_verdict_is_the_verdict_of_a_new_decision(
    objects: list[Any], policy: AdmissionPolicy, user: str
) -> None:
    for decide, stage in ((mutate_pod, ReviewStage.PROPOSED), (validate_pod, ReviewStage.FINAL)):
        remembered = VerdictCache(decide)
        context = ReviewContext(policy, NOTHING_KNOWN, "team-a", user, stage)
        for obj in objects * 2:
            assert remembered(read(obj), context) == decide(read(obj), context)
