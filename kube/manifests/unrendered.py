"""Recognises the sources of manifests that another program must render first: Helm charts and kustomizations.

Each is an error or a document that names the command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from .manifest_error import ManifestError

_CHART: Final = "Chart.yaml"
_OF_CHARTS: Final = frozenset({"templates", "charts"})
_KUSTOMIZATIONS: Final = frozenset({"kustomization.yaml", "kustomization.yml"})
_ACTION: Final = re.compile(
    r"\{\{-?\s*(?:[.$]|/\*|(?:if|else|end|range|with|define|block|template|include|toYaml|printf|quote|default)\b)"
)
"""An action of Go's templates; Argo's `{{inputs.parameters.x}}` is none."""

KUSTOMIZE_GROUP: Final = "kustomize.config.k8s.io"


def unrendered_chart(path: Path) -> ManifestError | None:
    """Returns an error for a file of a Helm chart; the same one for each of them. Other files below the chart's folder,
    such as its CRDs, are manifests.
    """
    chart = next((folder for folder in path.parents if _is_chart(folder)), None)
    if chart is None:
        return None
    first, *below = path.relative_to(chart).parts
    if below and first not in _OF_CHARTS:
        return None
    what = "the files of a Helm chart are templates"
    return ManifestError(str(chart / _CHART), 1, what=what, fix=_piped(f"helm template {shlex.quote(str(chart))}"))


def unrendered_template(text: str, source: str) -> ManifestError | None:
    """Returns an error for text with an action of Helm's templates, at the line of the first one."""
    action = _ACTION.search(text)
    if action is None:
        return None
    line = 1 + text.count("\n", 0, action.start())
    return ManifestError(source, line, what="a Helm template is no manifest", fix=_piped("helm template CHART"))


def is_kustomization(path: Path) -> bool:
    return path.name in _KUSTOMIZATIONS


def is_kustomize_kind(obj: Mapping[str, Any]) -> bool:
    return str(obj.get("apiVersion")).startswith(f"{KUSTOMIZE_GROUP}/")


def kustomize(path: Path) -> str:
    """Returns why a kustomization is not judged, with the command that makes manifests of it."""
    return "a kustomization is no manifest; " + _piped(f"kubectl kustomize {shlex.quote(str(path.parent))}")


def _piped(command: str) -> str:
    return f"render it: {command} | halfcard review -f -"


@cache
def _is_chart(folder: Path) -> bool:
    return Path(folder, _CHART).is_file()
