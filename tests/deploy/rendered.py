"""Halfcard's manifests as people apply them, and the chart that they are rendered from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
CHART: Final = DEPLOY / "chart" / "halfcard"
MANIFESTS: Final = tuple(yaml.safe_load_all((DEPLOY / "halfcard.yaml").read_text()))


def every(kind: str) -> dict[str, Any]:
    """By name."""
    return {item["metadata"]["name"]: item for item in MANIFESTS if item["kind"] == kind}


def pods() -> dict[str, Any]:
    """The templates of all pods, by the name of what makes them."""
    makers = every("Deployment") | every("DaemonSet")
    return {name: item["spec"]["template"] for name, item in makers.items()}
