"""Finds pods that kubelet rejected: it reports that once, in the pod's status, and never tries again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from halfcard import names
from halfcard.placing.pod_facts import PodFacts
from halfcard.problems import printable

from .pod_status import NodePod

_FAILED: Final = "Failed"
_UNEXPECTED: Final = "UnexpectedAdmissionError"
_OUT_OF: Final = "OutOf"
_MESSAGE_CHARS: Final = 400


class FailedAdmission(NamedTuple):
    """A rejected pod, with kubelet's reason and message."""

    uid: str
    pod: str
    reason: str
    message: str


def failed_admissions(pods: Iterable[tuple[NodePod, PodFacts]]) -> tuple[FailedAdmission, ...]:
    """Returns the rejected pods with claims, such as those that kubelet admitted while no agent offered devices."""
    return tuple(
        [
            FailedAdmission(facts.uid, facts.title, pod.status.reason, printable(pod.status.message, _MESSAGE_CHARS))
            for pod, facts in pods
            if facts.asks_for_cards
            and pod.status is not None
            and pod.status.phase == _FAILED
            and _is_about_cards(pod.status.reason, facts)
        ]
    )


def _is_about_cards(reason: str, facts: PodFacts) -> bool:
    """Kubelet has one reason for every refusal of a plugin, and otherwise names the resource that is short."""
    return reason == _UNEXPECTED or reason.removeprefix(_OUT_OF) in {*facts.asks, names.SLOT}
