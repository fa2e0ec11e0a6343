"""The contents of the static guard; tests/cluster shows on a real API server what it refuses."""

from __future__ import annotations

from typing import Any

from admission.policy import AdmissionPolicy
from admission.registration.static_guard import GUARDED, guard
from halfcard.dialects import Dialects
from halfcard.problems import CORES, Severity


def messages(policy: AdmissionPolicy) -> str:
    return "\n".join(each["messageExpression"] for each in spec(policy)["validations"])


def spec(policy: AdmissionPolicy) -> dict[str, Any]:
    found: dict[str, Any] = guard(policy)[0]["spec"]
    return found


def test_a_rule_that_only_warns_is_not_in_the_guard() -> None:
    for severity, is_held in ((Severity.DENY, True), (Severity.WARN, False), (Severity.OFF, False)):
        assert (f"[{CORES.code}]" in messages(AdmissionPolicy(severities={CORES.code: severity}))) is is_held


def test_each_rule_is_there_once_with_the_text_of_the_table() -> None:
    told = messages(AdmissionPolicy())
    assert len({each.rule.code for each in GUARDED}) == len(GUARDED)
    for each in GUARDED:
        assert told.count(f"; {each.rule.text}; {each.fix} [{each.rule.code}]") == 1


def test_resources_of_a_disabled_dialect_are_ignored() -> None:
    variables = {
        each["name"]: each["expression"] for each in spec(AdmissionPolicy(Dialects.named(["volcano"])))["variables"]
    }
    assert variables["words"] == "['volcano.sh/gpu-memory', 'volcano.sh/gpu-number']"
    assert (variables["systems"], variables["alone"]) == (f"[{variables['words']}]", "[]")
