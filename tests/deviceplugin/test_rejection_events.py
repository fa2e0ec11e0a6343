"""The Event about a pod that kubelet rejected."""

from __future__ import annotations

from deviceplugin.failed_admissions import FailedAdmission
from deviceplugin.rejection_events import sentence
from halfcard.events import MOST_CHARS


def test_it_says_what_happened_why_and_what_to_do() -> None:
    said = sentence(FailedAdmission("u", "team/p", "UnexpectedAdmissionError", "Requested: 60, Available: 40"), "gpu-a")
    assert said.startswith("kubelet of node gpu-a rejected this pod for good (UnexpectedAdmissionError)")
    assert "Requested: 60, Available: 40" in said
    assert "two schedulers bound pods to the node at once" in said
    assert "delete this one and create it again" in said
    assert len(said) < MOST_CHARS
