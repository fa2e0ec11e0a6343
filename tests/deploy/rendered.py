"""The rendered manifests, and their chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
CHART: Final = DEPLOY / "chart" / "halfcard"
MANIFESTS: Final = tuple(yaml.safe_load_all((DEPLOY / "halfcard.yaml").read_text()))


def every(kind: str) -> dict[str, Any]:
    """Returns the objects of a kind, by name."""
    return {item["metadata"]["name"]: item for item in MANIFESTS if item["kind"] == kind}


def pods() -> dict[str, Any]:
    """The pod templates, by the name of their workload."""
    makers = every("Deployment") | every("DaemonSet")
    return {name: item["spec"]["template"] for name, item in makers.items()}
