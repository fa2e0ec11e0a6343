"""Alerts and dashboard query existing metrics by existing labels, and every alert links to its runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from docs.fragments import FRAGMENTS
from tests.docs.pages import ROOT, anchors

from .rendered import CHART

_ROW: Final = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)
_SUFFIXES: Final = ("_bucket", "_sum", "_count")
_ADDED: Final = frozenset({"le", "instance", "namespace", "pod", "job"})
"""Labels of histograms, and labels that Prometheus adds."""

METRICS: Final = {
    name: frozenset(re.findall(r"`(\w+)`", labels)) for name, _, labels in _ROW.findall(FRAGMENTS["metrics"]())
}
GROUPS: Final = [
    *yaml.safe_load((CHART / "monitoring" / "rules.yaml").read_text())["groups"],
    *yaml.safe_load((CHART / "monitoring" / "certificates.yaml").read_text()),
]
RULES: Final = [rule for group in GROUPS for rule in group["rules"]]
BOARD: Final = json.loads((CHART / "monitoring" / "dashboard.json").read_text())


def queries() -> Iterator[tuple[str, str]]:
    """Yields every expression, and the text next to it that uses its labels."""
    for rule in RULES:
        yield rule["expr"], rule["annotations"]["summary"]
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"], target["legendFormat"]


def metrics_in(expression: str) -> set[str]:
    found = re.findall(r"\b(?:halfcard|container)_\w+", expression)
    return {next((each.removesuffix(end) for end in _SUFFIXES if each.endswith(end)), each) for each in found}


def labels(expression: str, text: str) -> set[str]:
    chosen = re.findall(r"(\w+)(?:!?=~?)\"", expression)
    grouped = [each.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for each in group.split(",")]
    shown = re.findall(r"\$labels\.(\w+)", text) + re.findall(r"{{(\w+)}}", text)
    return {*chosen, *grouped, *shown}


@pytest.mark.parametrize(("expression", "text"), list(queries()))
def test_a_query_uses_existing_metrics_and_labels(expression: str, text: str) -> None:
    metrics = metrics_in(expression)
    assert metrics and metrics <= METRICS.keys()
    assert labels(expression, text) - _ADDED <= frozenset().union(*(METRICS[each] for each in metrics))


def test_the_table_of_metrics_was_read() -> None:
    assert METRICS["halfcard_admission_decisions_total"] == {"code", "verdict", "webhook"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_the_runbook_of_an_alert_exists(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert anchor == rule["alert"].lower()
    assert anchor in anchors(ROOT / Path(page))


def test_no_two_panels_of_the_dashboard_overlap() -> None:
    panels = [each["gridPos"] for each in BOARD["panels"]]
    taken = [
        (x, y) for at in panels for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken))
    assert len({each["id"] for each in BOARD["panels"]}) == len(panels)
