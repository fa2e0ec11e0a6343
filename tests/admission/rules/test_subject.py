from __future__ import annotations

import msgspec
import pytest

from admission.policy import AdmissionPolicy
from admission.rules.subject import ReviewContext, ReviewStage, Subject, subject
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.pod.spec import Pod
from tests.builders import Json, container, gpu, pod_of

from ..judging import AGENT, TRUSTING


def seen(obj: Json, *, user: str = "alice", policy: AdmissionPolicy = TRUSTING) -> Subject:
    context = ReviewContext(policy, NOTHING_KNOWN, "team-a", user, ReviewStage.FINAL)
    return subject(msgspec.convert(obj, Pod), context)


def test_every_container_is_listed_also_without_requests() -> None:
    obj = pod_of(gpu(), container(), init=[gpu("100", None)], ephemeralContainers=[{"name": "e"}])
    found = [(place.where, claim is not None) for place, claim in seen(obj).containers]
    assert found == [
        ("spec.containers[0]", True),
        ("spec.containers[1]", False),
        ("spec.initContainers[0]", True),
        ("spec.ephemeralContainers[0]", False),
    ]


@pytest.mark.parametrize(
    ("obj", "shared"),
    [
        (pod_of(gpu()), True),
        (pod_of(gpu("100", None)), False),
        (pod_of(gpu("100", None), gpu()), True),
        (pod_of(gpu("100", None), init=[gpu()]), True),
        (pod_of(container()), False),
    ],
)
def test_one_share_is_enough_for_a_pod_to_have_a_share(obj: Json, shared: bool) -> None:  # noqa: FBT001
    assert seen(obj).has_share is shared


@pytest.mark.parametrize(("user", "trusted"), [(AGENT, True), ("alice", False), ("", False)])
def test_only_configured_users_are_trusted(user: str, trusted: bool) -> None:  # noqa: FBT001
    assert seen(pod_of(), user=user).context.is_trusted is trusted
    assert not seen(pod_of(), user=user, policy=AdmissionPolicy()).context.is_trusted
