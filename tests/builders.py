"""Pods in one line, as people write them: `pod().asks(core="0.3", memory="5Gi").manifest`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.pod.spec import CONTAINERS, INIT_CONTAINERS, Pod

WORDS: Final = {
    "core": names.VCUDA_CORE,
    "memory": names.VCUDA_MEMORY,
    "tuya_core": names.TUYA + names.VCUDA_CORE_SUFFIX,
    "tuya_memory": names.TUYA + names.VCUDA_MEMORY_SUFFIX,
    "sgpu": names.TUYA_SGPU,
    "gpu_mem": names.ALIYUN_GPU_MEM,
    "gpu_memory": names.VOLCANO_GPU_MEMORY,
    "gpu_number": names.VOLCANO_GPU_NUMBER,
    "gpu": names.NVIDIA_GPU,
    "gpu_shared": names.NVIDIA_GPU_SHARED,
    "gpumem": names.HAMI_GPUMEM,
    "gpumem_percentage": names.HAMI_GPUMEM_PERCENTAGE,
    "gpucores": names.HAMI_GPUCORES,
}
"""Short words for resources; any other word stands for itself."""

Amount = str | float
"""An amount as YAML gives it: text or a number."""


def amounts(**words: Amount) -> dict[str, Amount]:
    return {WORDS.get(word, word): amount for word, amount in words.items()}


def pod(name: str = "p") -> PodBuilder:
    return PodBuilder({"name": name}, {CONTAINERS: []})


@dataclass(frozen=True)
class PodBuilder:
    """A pod that grows by one thing at a time; every step is a new builder."""

    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]

    def asks(self, **limits: Amount) -> PodBuilder:
        """An app container with limits, which is how people mostly write it."""
        return self.container(limits=amounts(**limits))

    def init(self, **limits: Amount) -> PodBuilder:
        return self.container(INIT_CONTAINERS, limits=amounts(**limits))

    def sidecar(self, **limits: Amount) -> PodBuilder:
        return self.container(INIT_CONTAINERS, limits=amounts(**limits), restartPolicy="Always")

    def container(
        self,
        field: str = CONTAINERS,
        *,
        limits: Mapping[str, Amount] | None = None,
        requests: Mapping[str, Amount] | None = None,
        **fields: Any,
    ) -> PodBuilder:
        """Any container: `field` is the list it stands in, `fields` is what else its manifest says."""
        there = self.spec.get(field, [])
        sides = {side: dict(given) for side, given in (("limits", limits), ("requests", requests)) if given}
        fresh = {"name": f"{field}-{len(there)}", **({"resources": sides} if sides else {}), **fields}
        return self.specified(**{field: [*there, fresh]})

    def specified(self, **fields: Any) -> PodBuilder:
        return replace(self, spec={**self.spec, **fields})

    def annotated(self, annotations: Mapping[str, str]) -> PodBuilder:
        return replace(self, metadata={**self.metadata, "annotations": dict(annotations)})

    def labelled(self, labels: Mapping[str, str]) -> PodBuilder:
        return replace(self, metadata={**self.metadata, "labels": dict(labels)})

    @property
    def manifest(self) -> dict[str, Any]:
        """The object as JSON: a fresh copy each time."""
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": self.metadata, "spec": self.spec}
        copy: dict[str, Any] = json.loads(json.dumps(obj))
        return copy

    @property
    def read(self) -> Pod:
        """The pod as the rules see it."""
        return msgspec.json.decode(msgspec.json.encode(self.manifest), type=Pod)
