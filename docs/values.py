"""Makes the reference of the chart's values, from its schema and defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, Final

import yaml

from deploy.chart.made import CHART, SCHEMA
from docs.tables import cell, code, table

_ELSEWHERE: Final = frozenset({"global", "settings"})
"""Values that helm itself gives, or that have their own table."""


_WHOLE: Final = frozenset({"resources", "affinity", "annotations", "labels"})
"""Values whose keys are Kubernetes' own."""


def values() -> str:
    schema, defaults = json.loads(SCHEMA.read_text()), yaml.safe_load((CHART / "values.yaml").read_text())
    rows = ((code(path), code(_default(defaults, path)), cell(meaning)) for path, meaning in _described(schema, schema))
    return table(("value", "default", "meaning"), rows)


def _described(whole: Mapping[str, Any], part: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, each in part.get("properties", {}).items():
        if above + name in _ELSEWHERE:
            continue
        meant = each | _definition(whole, each)
        if "properties" in meant and name not in _WHOLE:
            yield from _described(whole, meant, f"{above}{name}.")
        else:
            yield above + name, meant.get("description", "")


def _definition(whole: Mapping[str, Any], each: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = reduce(lambda at, step: at[step], each.get("$ref", "#").split("/")[1:], dict(whole))
    return found if "$ref" in each else {}


def _default(defaults: Mapping[str, Any], path: str) -> str:
    found = reduce(lambda at, step: at[step], path.split("."), defaults)
    return json.dumps(found, separators=(", ", ": "))
