from __future__ import annotations

import pytest

from admission.policy import AdmissionPolicy
from halfcard.problems import CORES, RULES, SCHEDULER, Rule, Severity

from .judging import POLICY


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_table_tells_the_severity_and_a_setting_overrules_it(rule: Rule) -> None:
    problem = rule.broken("where", "got", "fix")
    assert POLICY.severity(problem) is rule.severity
    for severity in Severity:
        assert AdmissionPolicy(severities={rule.code: severity}).severity(problem) is severity


def test_a_setting_for_one_rule_leaves_the_others() -> None:
    policy = AdmissionPolicy(severities={CORES.code: Severity.OFF})
    assert policy.severity(SCHEDULER.broken("a", "b", "c")) is Severity.WARN


def test_the_clusters_own_namespaces_are_exempt_unless_told_otherwise() -> None:
    assert POLICY.exempt_namespaces == {"kube-system", "halfcard-system"}
