"""The manifests of the demonstration, as users of each system write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Scene:
    title: str
    file: str
    manifest: str
    user: str = "dana"


NODE: Final = """\
apiVersion: v1
kind: Node
metadata: {name: gpu1, labels: {nvidia-device-enable: enable}}
status:
  capacity: {tencent.com/vcuda-core: "400", tencent.com/vcuda-memory: "236"}
"""
"""Four cards of 16 GB."""

SCENES: Final = (
    Scene(
        "0.3 of a card and 5 GiB, in everyday units. gpu-manager's own are 30 and 20: the pod is repaired.",
        "nginx.yaml",
        """\
apiVersion: v1
kind: Pod
metadata: {name: nginx, namespace: team-a}
spec:
  containers:
  - name: nginx
    image: nginx
    resources:
      requests:
        tencent.com/vcuda-core: 0.3
        tencent.com/vcuda-memory: 5Gi
""",
    ),
    Scene(
        "The same pod as in gpu-manager's own examples: only the missing core limit is added.",
        "vcuda20.yaml",
        """\
apiVersion: v1
kind: Pod
metadata: {name: vcuda20, namespace: team-a}
spec:
  containers:
  - name: tensorflow
    image: tensorflow/tensorflow:2.7.0-gpu
    resources:
      requests: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 12}
      limits: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 12}
""",
    ),
    Scene(
        "One and a half cards are not possible. The message says which amounts are.",
        "trainer.yaml",
        """\
apiVersion: v1
kind: Pod
metadata: {name: trainer, namespace: team-a}
spec:
  containers:
  - name: trainer
    image: pytorch/pytorch
    resources:
      limits: {tencent.com/vcuda-core: 1.5, tencent.com/vcuda-memory: 12}
""",
    ),
    Scene(
        "A Deployment with three mistakes is refused at apply: all three are reported at once, not an hour later.",
        "inference.yaml",
        """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: inference, namespace: team-a}
spec:
  template:
    metadata: {annotations: {tencent.com/vcuda-core-limit: "10"}}
    spec:
      containers:
      - name: server
        image: tritonserver
        resources:
          limits: {tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 80}
      - name: sidecar
        image: tritonserver
        resources:
          limits: {tencent.com/vcuda-core: 20}
""",
    ),
    Scene(
        "Two half cards in Tuya's dialect, to debug a job for two cards.",
        "notebook.yaml",
        """\
apiVersion: v1
kind: Pod
metadata: {name: notebook, namespace: team-b}
spec:
  containers:
  - name: notebook
    image: jupyter
    resources:
      limits: {tuya.com/sgpu: 2}
""",
    ),
    Scene(
        "Volcano's dialect, and a scheduler that does not call Halfcard: allowed, with a warning.",
        "gpu-pod1.yaml",
        """\
apiVersion: v1
kind: Pod
metadata: {name: gpu-pod1, namespace: team-b}
spec:
  schedulerName: volcano
  containers:
  - name: cuda-container
    image: nvidia/cuda:11.6.2-base-ubuntu20.04
    resources:
      limits: {volcano.sh/gpu-memory: 2048}
""",
    ),
    Scene(
        "A pod that requests no card and uses all of them.",
        "miner.yaml",
        """\
apiVersion: v1
kind: Pod
metadata:
  name: miner
  namespace: team-b
  annotations: {tencent.com/predicate-gpu-idx-0: "1"}
spec:
  containers:
  - name: miner
    image: busybox
    env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]
""",
        user="mallory",
    ),
    Scene(
        "A quota as many write it. Kubernetes accepts limits.* but never counts it; now it counts.",
        "quota.yaml",
        """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpu, namespace: team-a}
spec:
  hard: {limits.tencent.com/vcuda-core: 100, limits.tencent.com/vcuda-memory: 59}
""",
    ),
)
