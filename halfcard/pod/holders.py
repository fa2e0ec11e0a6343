"""The kinds whose objects contain pods, and where: one table for `halfcard review`, the webhook and its registration.

A path leads to a pod template, to the spec of a pod, or to one container; `*` is every member of a mapping, or every
item of a list. Other fields of the object are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ..patches import Pointer, field_path

Holders = Mapping[str, tuple[str, ...]]
"""GROUP/KIND (the kind alone in the core group), and its paths."""

BUILT_IN: Final[Holders] = {
    "apps/Deployment": ("spec.template",),
    "apps/StatefulSet": ("spec.template",),
    "apps/DaemonSet": ("spec.template",),
    "apps/ReplicaSet": ("spec.template",),
    "ReplicationController": ("spec.template",),
    "batch/Job": ("spec.template",),
    "batch/CronJob": ("spec.jobTemplate.spec.template",),
    "PodTemplate": ("template",),
}
"""Kubernetes' own kinds."""

_RAY: Final = ("headGroupSpec.template", "workerGroupSpecs.*.template")
_ARGO: Final = ("*", "*.container", "*.script", "*.containerSet", "*.sidecars.*")
_KSERVE: Final = ("", ".model", ".workerSpec")


def _below(root: str, paths: Sequence[str], between: str = ".") -> tuple[str, ...]:
    return tuple(f"{root}{between}{path}" for path in paths)


WELL_KNOWN: Final[Holders] = {
    "apps.kruise.io/CloneSet": ("spec.template",),
    "apps.kruise.io/DaemonSet": ("spec.template",),
    "apps.kruise.io/StatefulSet": ("spec.template",),
    "argoproj.io/ClusterWorkflowTemplate": _below("spec.templates", _ARGO),
    "argoproj.io/CronWorkflow": _below("spec.workflowSpec.templates", _ARGO),
    "argoproj.io/Rollout": ("spec.template",),
    "argoproj.io/Workflow": _below("spec.templates", _ARGO),
    "argoproj.io/WorkflowTemplate": _below("spec.templates", _ARGO),
    "batch.volcano.sh/CronJob": ("spec.jobTemplate.spec.tasks.*.template",),
    "batch.volcano.sh/Job": ("spec.tasks.*.template",),
    "jobset.x-k8s.io/JobSet": ("spec.replicatedJobs.*.template.spec.template",),
    "keda.sh/ScaledJob": ("spec.jobTargetRef.template",),
    "kubeflow.org/JAXJob": ("spec.jaxReplicaSpecs.*.template",),
    "kubeflow.org/MPIJob": ("spec.mpiReplicaSpecs.*.template",),
    "kubeflow.org/Notebook": ("spec.template",),
    "kubeflow.org/PaddleJob": ("spec.paddleReplicaSpecs.*.template",),
    "kubeflow.org/PyTorchJob": ("spec.pytorchReplicaSpecs.*.template",),
    "kubeflow.org/TFJob": ("spec.tfReplicaSpecs.*.template",),
    "kubeflow.org/XGBoostJob": ("spec.xgbReplicaSpecs.*.template",),
    "leaderworkerset.x-k8s.io/LeaderWorkerSet": _below(
        "spec.leaderWorkerTemplate", ("leaderTemplate", "workerTemplate")
    ),
    "ray.io/RayCluster": _below("spec", _RAY),
    "ray.io/RayJob": (*_below("spec.rayClusterSpec", _RAY), "spec.submitterPodTemplate"),
    "ray.io/RayService": _below("spec.rayClusterConfig", _RAY),
    "serving.knative.dev/Configuration": ("spec.template",),
    "serving.knative.dev/Service": ("spec.template",),
    "serving.kserve.io/ClusterServingRuntime": ("spec",),
    "serving.kserve.io/InferenceService": (
        *_below("spec.predictor", _KSERVE, ""),
        "spec.transformer",
        "spec.explainer",
    ),
    "serving.kserve.io/ServingRuntime": ("spec",),
    "sparkoperator.k8s.io/SparkApplication": _below("spec", ("driver.template", "executor.template")),
    "trainer.kubeflow.org/ClusterTrainingRuntime": ("spec.template.spec.replicatedJobs.*.template.spec.template",),
    "trainer.kubeflow.org/TrainingRuntime": ("spec.template.spec.replicatedJobs.*.template.spec.template",),
}
"""Kinds of other projects; the setting `pod_templates` adds to them."""


class HeldPod(NamedTuple):
    """A pod template in an object.

    Attributes:
        root: where it is.
        wrapping: the fields that are missing there to make a pod of it: none for a template, `spec` for the spec of a
            pod, `spec.containers[0]` for a container.
        pod: what is there, as a pod.
    """

    root: Pointer
    wrapping: Pointer
    pod: Any

    def pointer(self, of_pod: Pointer) -> Pointer:
        """Returns where a field of the pod is in the object."""
        own = len(self.wrapping)
        return self.root + (of_pod[own:] if of_pod[:own] == self.wrapping else of_pod)

    def path(self, of_pod: str) -> str:
        """Returns the path of a field of the pod in the object."""
        inner = of_pod.removeprefix(field_path(self.wrapping)).removeprefix(".")
        return ".".join(filter(None, (field_path(self.root), inner)))


def kind_key(group: str, kind: str) -> str:
    return f"{group}/{kind}" if group else kind


def known_kind(holders: Holders, group: str, kind: str) -> str | None:
    """Returns the key of a kind; None where it is not known. Kubernetes' own kinds need no group."""
    if (key := kind_key(group, kind)) in holders:
        return key
    return None if group else next((key for key in BUILT_IN if key.rpartition("/")[2] == kind), None)


def held_pods(obj: Any, paths: Sequence[str]) -> Iterator[HeldPod]:
    """Yields what is at the paths; nothing where nothing is.

    Raises:
        msgspec.ValidationError: a field on the way can hold nothing.
    """
    for path in paths:
        for root, value in _matches(obj, tuple(path.split("."))):
            yield _held(root, value)


def _matches(value: Any, path: Pointer, at: Pointer = ()) -> Iterator[tuple[Pointer, Any]]:
    if value is None:
        return
    if not path:
        yield at, value
        return
    for part, member in _members(value, path[0], at):
        yield from _matches(member, path[1:], (*at, part))


def _members(value: Any, part: str | int, at: Pointer) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        return value.items() if part == "*" else [(part, value.get(part))]
    if isinstance(value, list) and part == "*":
        return enumerate(value)
    raise msgspec.ValidationError(f"Expected `object`, got `{type_name(value)}` - at `$.{field_path(at)}`")


_TYPES: Final = {bool: "bool", int: "int", float: "float", list: "array", dict: "object"}


def type_name(value: Any) -> str:
    """Names the type of a JSON value like msgspec."""
    return _TYPES.get(type(value), "str")


_OF_SPECS: Final = frozenset({"containers", "initContainers", "volumes"})


def _held(root: Pointer, value: Any) -> HeldPod:
    if not isinstance(value, Mapping) or "spec" in value:
        return HeldPod(root, (), value)
    if not _OF_SPECS.isdisjoint(value):
        return HeldPod(root, ("spec",), {"metadata": value.get("metadata"), "spec": value})
    if "metadata" in value:
        return HeldPod(root, (), value)
    return HeldPod(root, ("spec", "containers", 0), {"spec": {"containers": [value]}})
