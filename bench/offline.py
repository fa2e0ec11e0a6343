"""How long `halfcard review` takes for thousands of pods in one YAML file, as a command."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from .figures import Figure, Part
from .servers import ROOT

MOST_S: Final = 5.0
_POD: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer-{number}
  namespace: team-vision
  labels: {{app: trainer, team: vision}}
spec:
  containers:
    - name: trainer
      image: registry.example.com/vision/trainer:1.14.2
      args: ["--epochs=90"]
      env:
        - name: EPOCHS
          value: "90"
      resources:
        limits:
          cpu: 4
          memory: 16Gi
          tencent.com/vcuda-core: {cores}
          tencent.com/vcuda-memory: {memory}
"""


def measure(folder: Path, *, pods: int = 10_000) -> Part:
    file = folder / "pods.yaml"
    texts = (_POD.format(number=each, cores=each % 120, memory=each % 64) for each in range(pods))
    file.write_text("---\n".join(texts), encoding="utf-8")
    seconds = _review_s(file)
    print("  offline: done", file=sys.stderr)
    figures = (Figure(f"{pods:,} pods, {file.stat().st_size / 1e6:.1f} MB of YAML", seconds, "s", MOST_S),)
    return Part("`halfcard review -o json` as a command", figures)


def _review_s(file: Path) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "cli", "review", "-f", str(file), "-o", "json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"review failed with {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
    return time.perf_counter() - began
