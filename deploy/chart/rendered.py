"""Renders the manifests for one `kubectl apply -f`: the namespace, and the output of helm."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from halfcard import names

_HEAD: Final = f"""\
# All of Halfcard with the chart's own values: kubectl apply -f deploy/halfcard.yaml
# Generated from deploy/chart/halfcard by `python -m deploy.chart`. To change something, use the chart or Kustomize.
apiVersion: v1
kind: Namespace
metadata:
  name: {names.NAMESPACE}
"""
_PULLED: Final = "--set=image.pullPolicy=IfNotPresent"
"""Kustomize may name a registry."""


class CannotRenderError(Exception):
    """Helm is missing, or refuses the chart; the text says why."""


def manifests(helm: str, chart: Path) -> str:
    command = [helm, "template", "halfcard", str(chart), f"--namespace={names.NAMESPACE}", "--no-hooks", _PULLED]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        raise CannotRenderError(
            f"no program {helm}: put helm on PATH, or name it with --helm FILE, such as that of `make cluster-tools`."
        ) from None
    if done.returncode:
        raise CannotRenderError(f"helm refuses {chart}: {done.stderr.strip()}")
    return _HEAD + done.stdout
