"""The rights that the doctor asks about are those that the chart grants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from cli.diagnosis.processes.expected_rights import ALWAYS, SECRETS, SLICES, grants
from deploy.chart.made import CHART
from halfcard import names
from settings.installation import Settings
from settings.sections import TimeSlicing

Granted = tuple[str, str, str, str, str, str, str, str]


def shipped() -> Iterator[Granted]:
    """Yields account, group, resource, verb, namespace, object, role and file of each right in the chart."""
    for file in CHART.glob("rbac/*.yaml"):
        items = [each for each in yaml.safe_load_all(file.read_text()) if each]
        roles = {(each["kind"], each["metadata"]["name"], _namespace(each)): each for each in items if "rules" in each}
        for binding in (each for each in items if each["kind"].endswith("Binding") and "roleRef" in each):
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"], _namespace(binding)]
            for subject in binding["subjects"]:
                yield from _rights(subject["name"], role, file.stem)


def _namespace(item: dict[str, Any]) -> str:
    return str(item["metadata"].get("namespace", ""))


def _rights(account: str, role: dict[str, Any], file: str) -> Iterator[Granted]:
    for rule in role["rules"]:
        for group in rule.get("apiGroups", []):  # paths, which halfcard top reads, are no right of a process
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for only in rule.get("resourceNames", [""]):
                        where = _namespace(role)
                        yield account, group, resource, verb, where, only, role["metadata"]["name"], file


def test_every_right_of_the_chart_is_expected_and_no_other() -> None:
    known: Final = [right for grant in (*ALWAYS, *SECRETS, SLICES) for right in grant.rights()]
    expected = [
        (
            each.grant.account,
            each.grant.group,
            each.resource,
            each.verb,
            each.grant.namespace,
            each.name,
            each.grant.role_name,
            each.grant.file_name,
        )
        for each in known
    ]
    assert sorted(expected) == sorted(shipped())


def test_rights_that_only_a_setting_needs_are_expected_with_that_setting() -> None:
    assert SLICES not in grants(Settings(), ())
    assert SLICES in grants(Settings(time_slicing=TimeSlicing(config=f"{names.NAMESPACE}/{SLICES.only}")), ())


def test_with_cert_manager_nothing_of_halfcards_writes_secrets() -> None:
    injected = {"metadata": {"annotations": {f"{names.CERT_MANAGER_INJECTS}ca-from": "a/b"}}}
    assert not set(SECRETS) & set(grants(Settings(), (injected,)))
    assert set(SECRETS) < set(grants(Settings(), ()))
