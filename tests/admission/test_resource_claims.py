"""Dynamic Resource Allocation: GPUs that no quota counts are refused, whoever asks for them and how."""

from __future__ import annotations

from typing import Any

import pytest

from admission.policy import AdmissionPolicy
from admission.policy_settings import policy_of
from admission.verdict import Verdict
from halfcard import names
from halfcard.problems import Severity
from settings.installation import read_settings
from tests.builders import Json, container, pod_of

from .judging import codes, judge, mutate, validate, warned_codes

EXACTLY = {"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
OLDER = {"name": "a", "deviceClassName": "gpu.nvidia.com"}
ONE_OF = {
    "name": "a",
    "firstAvailable": [{"deviceClassName": "nic.example.com"}, {"deviceClassName": "mig.nvidia.com", "count": 2}],
}
NETWORK = {"name": "a", "exactly": {"deviceClassName": "nic.example.com"}}


def claim(*requests: Json) -> Json:
    return {"kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests)}}}


def template(*requests: Json) -> Json:
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": "t"}, "spec": claim(*requests)}


def decided(obj: Json, **context: Any) -> Verdict:
    return judge(names.VALIDATE_CLAIMS_PATH, obj, kind=obj["kind"], **context)


@pytest.mark.parametrize("made", [claim, template])
@pytest.mark.parametrize(
    ("request_", "where"),
    [
        (EXACTLY, "devices.requests[1].exactly.deviceClassName"),
        (OLDER, "devices.requests[1].deviceClassName"),
        (ONE_OF, "devices.requests[1].firstAvailable[1].deviceClassName"),
    ],
)
def test_a_claim_of_a_gpu_class_is_refused(made: Any, request_: Json, where: str) -> None:
    (problem,) = decided(made(NETWORK, request_)).problems
    root = "spec" if made is claim else "spec.spec"
    assert (problem.code, problem.where) == ("HC017", f"{root}.{where}")


@pytest.mark.parametrize("obj", [claim(NETWORK), claim(), template(NETWORK), {"kind": "ResourceClaim"}])
def test_other_claims_are_admitted(obj: Json) -> None:
    assert decided(obj).allowed


@pytest.mark.parametrize("user", sorted(names.CLAIM_MAKERS))
def test_claims_that_the_cluster_makes_are_admitted(user: str) -> None:
    assert decided(claim(EXACTLY), user=user).allowed
    assert not decided(claim(EXACTLY), user=user.replace("kube", "team")).allowed


def test_the_installation_says_which_classes_are_gpus_and_whether_they_are_refused() -> None:
    own = policy_of(read_settings({"gpu_device_classes": ["gpu.example.com"]}))
    assert decided(claim(EXACTLY), policy=own).allowed
    mine = claim({"name": "a", "exactly": {"deviceClassName": "gpu.example.com"}})
    assert codes(decided(mine, policy=own)) == ["HC017"]
    off = AdmissionPolicy(severities={"HC017": Severity.OFF})
    assert decided(claim(EXACTLY), policy=off).allowed


@pytest.mark.parametrize("side", ["limits", "requests"])
@pytest.mark.parametrize("name", names.GPU_DEVICE_CLASSES)
def test_a_pod_that_asks_for_a_gpu_class_without_a_claim_is_refused(side: str, name: str) -> None:
    obj = pod_of(container(**{side: {names.DEVICE_CLASS_PREFIX + name: "8"}}))
    assert codes(validate(obj)) == codes(mutate(obj)) == ["HC017"]
    assert validate(obj).problems[0].where.startswith("spec.containers[0].resources.")
    other = pod_of(container(**{side: {names.DEVICE_CLASS_PREFIX + "nic.example.com": "8"}}))
    assert validate(other).allowed


def test_a_pod_with_claims_gets_a_warning_or_is_refused_as_the_installation_chooses() -> None:
    obj = pod_of(container(), resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    verdict = validate(obj)
    assert (verdict.allowed, warned_codes(verdict)) == (True, ["HC046"])
    assert codes(validate(obj, policy=AdmissionPolicy(severities={"HC046": Severity.DENY}))) == ["HC046"]
