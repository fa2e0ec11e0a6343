"""The reference is complete: every right has its reason, and every value, field and option its meaning."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
import yaml

from cli.__main__ import parser
from deploy.chart.made import CHART
from docs.kinds import kinds
from docs.programs import commands, processes
from docs.rights import rights
from docs.templated_roles import templated_roles
from docs.values import values

ROLES: Final = [
    item
    for text in (
        *(file.read_text() for file in sorted((CHART / "rbac").glob("*.yaml"))),
        *(text for _, text in templated_roles()),
    )
    for item in yaml.safe_load_all(text)
    if item["kind"] in ("Role", "ClusterRole")
]


def rows(text: str) -> list[list[str]]:
    """Returns the cells of all rows of all tables, except the heads."""
    tables = re.findall(r"^\| --- .*\n((?:\|.*\n?)+)", text, re.MULTILINE)
    lines = [line for table in tables for line in table.splitlines()]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_every_right_of_every_role_has_its_row() -> None:
    granted = sum(len(rule["verbs"]) for role in ROLES for rule in role["rules"])
    shown = [verb for _, _, verbs, _ in rows(rights()) for verb in verbs.split(", ")]
    assert len(shown) == granted > 50


def test_every_right_of_a_process_has_its_reason() -> None:
    assert [row for row in rows(rights()) if not row[3]] == []


def test_every_role_of_a_template_is_shown() -> None:
    templates = "".join(file.read_text() for file in (CHART / "templates").glob("*.yaml"))
    assert len(re.findall(r"^kind: (?:Cluster)?Role$", templates, re.MULTILINE)) == len(list(templated_roles()))
    assert {f"### {name}" for name, _ in templated_roles()} <= set(rights().splitlines())


def test_every_value_of_the_chart_has_its_row_and_meaning() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    shown = {row[0].strip("`").partition(".")[0] for row in rows(values())}
    assert shown == defaults.keys() - {"settings"}
    assert [row for row in rows(values()) if not row[2]] == []


@pytest.mark.parametrize("kind", ["gpuquota", "clustergpuquota"])
def test_every_field_of_a_spec_has_its_row(kind: str) -> None:
    (version,) = yaml.safe_load((CHART / "kinds" / f"{kind}.yaml").read_text())["spec"]["versions"]
    spec: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert {f"`spec.{name}`" for name in spec} <= {row[0] for row in rows(kinds())}


def test_every_command_and_process_has_its_options() -> None:
    (below,) = (action.choices for action in parser()._actions if action.choices)
    programs = [f"halfcard {name}" for name in below]
    programs += [f"python -m {name}" for name in ("admission", "certs keep", "deviceplugin", "extender", "quota")]
    heads = [
        line.removeprefix("### ") for line in f"{commands()}\n{processes()}".splitlines() if line.startswith("### ")
    ]
    assert [name for name in programs if not any(head == name or head.startswith(f"{name} ") for head in heads)] == []
