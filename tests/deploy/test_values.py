"""The chart's values: each is described, and what is made from the code is what the code says today."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from deploy.chart import checks_template, guard_template, scheduler_template
from deploy.chart.made import CHECKS, CONFIGURATION, GUARD, SCHEMA, TITLE, with_version
from deploy.chart.values_schema import from_code
from halfcard import __version__
from settings.installation import Settings
from tests.docs.pages import ROOT

from .rendered import CHART

WHOLE: Final = json.loads(SCHEMA.read_text())
VALUES: Final = yaml.safe_load((CHART / "values.yaml").read_text())
AGAIN: Final = "run `make chart`"


def described(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, bool]]:
    """Every value, and whether a sentence says what it is for: its own, or that of the definition it refers to."""
    for name, each in schema.get("properties", {}).items():
        kind, _, definition = each.get("$ref", "").rpartition("/")
        meant = WHOLE["definitions"][definition] if kind == "#/definitions" else each
        yield f"{path}{name}", bool(meant.get("description") or meant.get("properties"))
        if name not in ("settings", "resources"):
            yield from described(each, f"{path}{name}.")


def test_every_value_is_described() -> None:
    assert [path for path, has_sentence in described(WHOLE) if not has_sentence] == []
    assert [
        name for name, each in WHOLE["properties"]["settings"]["properties"].items() if not each["description"]
    ] == []


def test_every_described_value_has_a_default() -> None:
    for path, _ in described(WHOLE):
        found: Any = VALUES
        for name in path.split("."):
            assert path == "global" or name in found, path
            found = found.get(name, {})


def test_nothing_else_is_accepted() -> None:
    groups = [WHOLE, *(each for name, each in WHOLE["properties"].items() if each.get("type") == "object")]
    assert [each for each in groups if each.get("additionalProperties") is not False] == []


def test_the_settings_are_those_of_the_code() -> None:
    assert from_code(SCHEMA.read_text()) == SCHEMA.read_text(), AGAIN
    assert WHOLE["properties"]["settings"]["properties"].keys() == Settings.model_fields.keys()


def test_every_component_has_the_same_values_for_its_pods() -> None:
    common = {"priorityClassName", "nodeSelector", "affinity", "tolerations", "annotations", "labels", "resources"}
    components = {
        name: each["properties"].keys() for name, each in WHOLE["properties"].items() if "labels" in str(each)
    }
    processes = {"admission", "extender", "quota", "certs", "agent"}
    assert components.keys() == processes | {"scheduler"}
    assert [name for name, values in components.items() if not common <= values] == []
    assert {name for name, values in components.items() if "arguments" in values} == processes


def test_the_templates_that_the_code_makes_are_current() -> None:
    assert guard_template.template() == GUARD.read_text(), AGAIN
    assert checks_template.template() == CHECKS.read_text(), AGAIN
    assert scheduler_template.template() == CONFIGURATION.read_text(), AGAIN


def test_the_chart_has_the_version_of_the_code() -> None:
    chart = yaml.safe_load(TITLE.read_text())
    assert with_version(TITLE.read_text()) == TITLE.read_text(), AGAIN
    assert chart["version"] == chart["appVersion"] == __version__


def test_the_page_names_existing_values() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    named = {path for row in rows for path in re.findall(r"`([^`]+)`", row)}
    settings = {f"settings.{name}" for name in WHOLE["properties"]["settings"]["properties"]}
    assert len(named) > 8
    assert named <= {path for path, _ in described(WHOLE)} | settings
