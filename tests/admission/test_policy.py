from __future__ import annotations

import pytest

from admission.policy import AdmissionPolicy
from halfcard.problems import CORES, RULES, SCHEDULER, Rule, Severity

from .judging import POLICY


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_setting_overrides_the_severity_in_the_table(rule: Rule) -> None:
    problem = rule.broken("where", "got", "fix")
    assert POLICY.severity(problem) is rule.severity
    for severity in Severity:
        assert AdmissionPolicy(severities={rule.code: severity}).severity(problem) is severity


def test_a_setting_for_one_rule_does_not_change_the_others() -> None:
    policy = AdmissionPolicy(severities={CORES.code: Severity.OFF})
    assert policy.severity(SCHEDULER.broken("a", "b", "c")) is Severity.WARN


def test_the_namespaces_of_the_cluster_itself_are_exempt_by_default() -> None:
    assert POLICY.exempt_namespaces == {"kube-system", "halfcard-system"}
