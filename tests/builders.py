"""The one builder of pods for tests: `pod("p").asks(core="0.3", memory="5Gi").on("gpu1", ["GPU-0"]).manifest`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.pod.spec import CONTAINERS, INIT_CONTAINERS, Pod
from halfcard.pod.stored_pod import StoredPod

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

Json = dict[str, Any]
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
    status: Mapping[str, Any] = field(default_factory=dict)

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
        return self.described(annotations={**self.metadata.get("annotations", {}), **annotations})

    def labelled(self, labels: Mapping[str, str]) -> PodBuilder:
        return self.described(labels=dict(labels))

    def described(self, **metadata: Any) -> PodBuilder:
        return replace(self, metadata={**self.metadata, **metadata})

    def gated(self, *gates: str) -> PodBuilder:
        return self.specified(schedulingGates=[{"name": gate} for gate in gates])

    def on(self, node: str, cards: Sequence[str] | None = None) -> PodBuilder:
        """Bound to the node, with a record of these cards for each app container; None leaves the record away."""
        bound = self.specified(nodeName=node)
        if cards is None:
            return bound
        record = {each["name"]: list(cards) for each in self.spec[CONTAINERS]}
        return bound.annotated({names.PLACEMENT: json.dumps({"node": node, "cards": record})})

    def created(self, namespace: str = "team", **metadata: Any) -> PodBuilder:
        """With the namespace and the uid that the API server sets."""
        return self.described(**{"namespace": namespace, "uid": f"uid-{self.metadata['name']}", **metadata})

    def in_phase(self, phase: str) -> PodBuilder:
        return replace(self, status={"phase": phase})

    @property
    def manifest(self) -> dict[str, Any]:
        """The object as JSON: a fresh copy each time."""
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": self.metadata, "spec": self.spec}
        copy: dict[str, Any] = json.loads(json.dumps(obj | ({"status": self.status} if self.status else {})))
        return copy

    @property
    def read(self) -> Pod:
        """The pod as the rules see it."""
        return msgspec.json.decode(msgspec.json.encode(self.manifest), type=Pod)

    @property
    def stored(self) -> StoredPod:
        """The pod as informers see it."""
        return msgspec.json.decode(msgspec.json.encode(self.manifest), type=StoredPod)


# --- containers and pods in the form of JSON -------------------------------------------------------------------------


def container(limits: Json | None = None, requests: Json | None = None, **fields: Any) -> Json:
    sides = {"limits": limits, "requests": requests}
    resources = {side: amounts for side, amounts in sides.items() if amounts is not None}
    return {"name": "main", "image": "cuda", **({"resources": resources} if resources else {}), **fields}


def gpu(cores: Any = "30", memory: Any = "20", **fields: Any) -> Json:
    """A container as the API server passes it on: requests are limits; None leaves a resource away."""
    words = {names.VCUDA_CORE: cores, names.VCUDA_MEMORY: memory}
    limits = {resource: amount for resource, amount in words.items() if amount is not None}
    return container(limits, dict(limits), **fields)


def pod_of(
    *containers: Json,
    init: Sequence[Json] = (),
    annotations: Json | None = None,
    labels: Json | None = None,
    **spec: Any,
) -> Json:
    metadata = {"name": "train", "annotations": annotations, "labels": labels}
    inits = {INIT_CONTAINERS: list(init)} if init else {}
    given = {key: value for key, value in metadata.items() if value is not None}
    return PodBuilder(given, {CONTAINERS: list(containers), **inits, **spec}).manifest


def device_class(
    name: str = "gpu.nvidia.com",
    expression: str = "device.driver == 'gpu.nvidia.com'",
    *,
    resource: str | None = names.NVIDIA_GPU,
) -> Json:
    """A DeviceClass of Dynamic Resource Allocation, which pods may also ask for by a resource."""
    by_resource = {"extendedResourceName": resource} if resource else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **by_resource},
    }


def resource_slice(
    node: str | None, *, name: str = "", driver: str = "gpu.nvidia.com", devices: Sequence[str] = ("gpu-0",)
) -> Json:
    """What a driver publishes of a node; of all nodes for None."""
    where: Json = {"nodeName": node} if node else {"allNodes": True}
    pool = {"name": node or "all", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"{node}-{driver}"},
        "spec": {"driver": driver, "pool": pool, **where, "devices": [{"name": each} for each in devices]},
    }
