"""The contents of the static guard; tests/cluster shows on a real API server what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from admission.policy import AdmissionPolicy
from admission.registration.static_guard import GUARDED, guard, own_units
from halfcard import names
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


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        (names.VCUDA_MEMORY, "in units of 256 MiB"),
        (names.HAMI_GPUMEM, "in MiB"),
        (names.VOLCANO_GPU_MEMORY, "in MiB"),
        (names.ALIYUN_GPU_MEM, "in GiB or MiB as the setting aliyun_memory_unit says"),
    ],
)
def test_the_advice_about_units_names_each_resource_with_its_own(resource: str, unit: str) -> None:
    (clause,) = [each for each in own_units().split(", ") if resource in each]
    assert clause.endswith(f" {unit}")


def test_resources_of_a_disabled_dialect_are_ignored() -> None:
    variables = {
        each["name"]: each["expression"] for each in spec(AdmissionPolicy(Dialects.named(["volcano"])))["variables"]
    }
    assert variables["words"] == "['volcano.sh/gpu-memory', 'volcano.sh/gpu-number']"
    assert (variables["systems"], variables["alone"]) == (f"[{variables['words']}]", "[]")
