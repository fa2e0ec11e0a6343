"""Pods that kubelet rejected because devices were missing."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from deviceplugin.failed_admissions import FailedAdmission, failed_admissions
from deviceplugin.pod_status import NodePod
from halfcard.placing.pod_facts import PodFacts, read_facts
from tests.builders import PodBuilder, pod
from tests.halfcard.placing.examples import DIALECTS

SHARE: Final = pod("p").asks(core=30, memory=20)


def known(asking: PodBuilder, phase: str, reason: str) -> tuple[NodePod, PodFacts]:
    manifest = asking.manifest
    manifest["metadata"] |= {"uid": "u", "namespace": "team"}
    manifest["status"] = {"phase": phase, "reason": reason, "message": "Pod was rejected:\n no devices"}
    read = msgspec.json.decode(msgspec.json.encode(manifest), type=NodePod)
    return read, read_facts(read, DIALECTS)


TURNED_AWAY: Final = {
    "a plugin failed or was not there": "UnexpectedAdmissionError",
    "too few of what it asks for": "OutOftencent.com/vcuda-core",
    "too few slots": "OutOfhalfcard.dev/slot",
}


@pytest.mark.parametrize("reason", TURNED_AWAY.values(), ids=TURNED_AWAY)
def test_a_rejected_pod_is_reported_with_kubelets_message(reason: str) -> None:
    (found,) = failed_admissions([known(SHARE, "Failed", reason)])
    assert found == FailedAdmission("u", "team/p", reason, "Pod was rejected:\\n no devices")


OTHERS: Final = {
    "it ran": known(SHARE, "Running", ""),
    "it failed by itself": known(SHARE, "Failed", "Error"),
    "it was evicted": known(SHARE, "Failed", "Evicted"),
    "too little of the machine": known(SHARE, "Failed", "OutOfcpu"),
    "too few of what it does not ask for": known(SHARE, "Failed", "OutOfnvidia.com/gpu"),
    "it asks for no card": known(pod("p").asks(cpu=1), "Failed", "UnexpectedAdmissionError"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_pods_that_failed_for_other_reasons_are_not_counted(other: tuple[NodePod, PodFacts]) -> None:
    assert failed_admissions([other]) == ()
