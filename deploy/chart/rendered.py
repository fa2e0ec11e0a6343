"""The manifests for one `kubectl apply -f`: what helm renders from the chart, behind the namespace."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from halfcard import names

_HEAD: Final = f"""\
# All of Halfcard with the chart's own values: kubectl apply -f deploy/halfcard.yaml
# Made from deploy/chart/halfcard by `python -m deploy.chart`. To change something, use the chart or Kustomize.
apiVersion: v1
kind: Namespace
metadata:
  name: {names.NAMESPACE}
"""


class CannotRenderError(Exception):
    """Why, in one sentence."""


def manifests(helm: str, chart: Path) -> str:
    command = [helm, "template", "halfcard", str(chart), f"--namespace={names.NAMESPACE}", "--no-hooks"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        raise CannotRenderError(
            f"no program {helm}: put helm on PATH, or name one, such as that of `make cluster-tools`: --helm FILE."
        ) from None
    if done.returncode:
        raise CannotRenderError(f"helm refuses {chart}: {done.stderr.strip()}")
    return _HEAD + done.stdout
