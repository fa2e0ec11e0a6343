"""The generated files of the chart; later ones depend on earlier ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from halfcard import __version__
from halfcard.dialects import ALL

from . import checks_template, guard_template
from .rendered import manifests
from .values_schema import from_code

CHART: Final = Path(__file__).parent / "halfcard"
TITLE: Final = CHART / "Chart.yaml"
SCHEMA: Final = CHART / "values.schema.json"
GUARD: Final = CHART / "templates" / "guard.yaml"
CHECKS: Final = CHART / "templates" / "_checks.tpl"
MANIFESTS: Final = CHART.parents[1] / "halfcard.yaml"
SCHEDULER: Final = CHART.parents[1] / "scheduler" / "halfcard.yaml"

_IGNORED: Final = " # no node publishes it, so only Halfcard can count it\n        ignoredByScheduler: true"


def made(helm: str) -> Mapping[Path, Callable[[], str]]:
    return {
        TITLE: lambda: with_version(TITLE.read_text()),
        GUARD: guard_template.template,
        CHECKS: checks_template.template,
        SCHEMA: lambda: from_code(SCHEMA.read_text()),
        SCHEDULER: lambda: with_resources(SCHEDULER.read_text()),
        MANIFESTS: partial(manifests, helm, CHART),
    }


def with_version(title: str) -> str:
    """Sets the version of the chart, which is that of the image."""
    return re.sub(r"^(version|appVersion): .*$", rf"\1: {__version__}", title, flags=re.MULTILINE)


def with_resources(configuration: str) -> str:
    """Replaces the `managedResources` of a scheduler configuration; the file ends with them."""
    ignored = frozenset[str]().union(*(dialect.without_ids - {*dialect.offered} for dialect in ALL))
    resources = dict.fromkeys(resource for dialect in ALL for resource in sorted(dialect.resources))
    lines = "".join(f"      - name: {each}{_IGNORED if each in ignored else ''}\n" for each in resources)
    return re.sub(r"(managedResources:.*\n)[\s\S]*", rf"\1{lines}", configuration)
