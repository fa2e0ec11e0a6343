"""The generated files of the chart; later ones depend on earlier ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from halfcard import __version__

from . import checks_template, guard_template, scheduler_template
from .rendered import manifests
from .values_schema import from_code

CHART: Final = Path(__file__).parent / "halfcard"
TITLE: Final = CHART / "Chart.yaml"
SCHEMA: Final = CHART / "values.schema.json"
GUARD: Final = CHART / "templates" / "guard.yaml"
CHECKS: Final = CHART / "templates" / "_checks.tpl"
MANIFESTS: Final = CHART.parents[1] / "halfcard.yaml"
SCHEDULER: Final = CHART.parents[1] / "scheduler" / "halfcard.yaml"
BESIDE: Final = CHART.parents[1] / "scheduler" / "beside" / "extender.yaml"
CONFIGURATION: Final = CHART / "templates" / "_scheduler.tpl"


def made(helm: str) -> Mapping[Path, Callable[[], str]]:
    return {
        TITLE: lambda: with_version(TITLE.read_text()),
        GUARD: guard_template.template,
        CHECKS: checks_template.template,
        SCHEMA: lambda: from_code(SCHEMA.read_text()),
        SCHEDULER: scheduler_template.file,
        CONFIGURATION: scheduler_template.template,
        BESIDE: lambda: with_image(BESIDE.read_text()),
        MANIFESTS: partial(manifests, helm, CHART),
    }


def with_version(title: str) -> str:
    """Sets the version of the chart, which is that of the image."""
    return re.sub(r"^(version|appVersion): .*$", rf"\1: {__version__}", title, flags=re.MULTILINE)


def with_image(manifest: str) -> str:
    """Sets the version of Halfcard's image."""
    return re.sub(r"(image: \S+):.*$", rf"\1:{__version__}", manifest, flags=re.MULTILINE)
