"""Defines pods and pod templates with only the fields that rules read; all others are skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from .. import names

Amounts = Mapping[str, str | int | float]
"""Resource name to quantity, as written: JSON allows a number where Kubernetes prints a string."""

_NOTHING: Mapping[str, Any] = {}


class _Record(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An object that is decoded from JSON; unknown fields are skipped, and null is the same as absent."""


class Resources(_Record, frozen=True):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class EnvVar(_Record, frozen=True):
    name: str = ""
    value: str | None = None
    value_from: dict[str, Any] | None = None


class NamedRef(_Record, frozen=True):
    name: str = ""


class EnvFrom(_Record, frozen=True):
    prefix: str = ""
    config_map_ref: NamedRef | None = None


class VolumeMount(_Record, frozen=True):
    mount_path: str = ""


class SecurityContext(_Record, frozen=True):
    privileged: bool | None = None


class Container(_Record, frozen=True):
    name: str = ""
    resources: Resources | None = None
    env: list[EnvVar] | None = None
    env_from: list[EnvFrom] | None = None
    volume_mounts: list[VolumeMount] | None = None
    security_context: SecurityContext | None = None
    restart_policy: str | None = None

    @property
    def requests(self) -> Amounts:
        return (self.resources and self.resources.requests) or _NOTHING

    @property
    def limits(self) -> Amounts:
        return (self.resources and self.resources.limits) or _NOTHING

    @property
    def is_sidecar(self) -> bool:
        """Returns whether this init container keeps running next to the app containers."""
        return self.restart_policy == "Always"


class HostPath(_Record, frozen=True):
    path: str = ""


class Volume(_Record, frozen=True):
    host_path: HostPath | None = None


class Toleration(_Record, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class SchedulingGate(_Record, frozen=True):
    name: str = ""


class PodSpec(_Record, frozen=True):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    tolerations: list[Toleration] | None = None
    resource_claims: list[NamedRef] | None = None
    resources: Resources | None = None
    overhead: dict[str, str | int | float] | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    service_account_name: str | None = None
    runtime_class_name: str | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    scheduling_gates: list[SchedulingGate] | None = None


_EMPTY = PodSpec()


class OwnerReference(_Record, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class TemplateMetadata(_Record, frozen=True):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class PodMetadata(TemplateMetadata, frozen=True):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def title(self) -> str:
        """Returns the name for messages, also before the API server has generated it."""
        return self.name or (self.generate_name or "") + "*"

    @property
    def controller(self) -> OwnerReference | None:
        return next((owner for owner in self.owner_references or () if owner.controller), None)

    @property
    def has_controller(self) -> bool:
        return self.controller is not None

    @property
    def revision(self) -> str:
        """Returns the revision of its controller's pod template; empty where it has none."""
        labels = self.labels or _NOTHING
        return next((labels[name] for name in names.REVISION_LABELS if name in labels), "")

    @property
    def workload(self) -> tuple[str, str] | None:
        """Returns kind and name of what replaces the pod by a rollout: a Deployment, whose ReplicaSets are named after
        it and their revision, or its controller.
        """
        owner = self.controller
        if owner is None:
            return None
        deployment = owner.name.removesuffix(f"-{self.revision}") if owner.kind == "ReplicaSet" else owner.name
        return ("Deployment" if deployment != owner.name else owner.kind), deployment


class Pod(_Record, frozen=True):
    """A pod or a pod template, without its name: pods of one template are equal."""

    metadata: TemplateMetadata | None = None
    spec: PodSpec | None = None

    @property
    def annotations(self) -> Mapping[str, str]:
        return (self.metadata and self.metadata.annotations) or _NOTHING

    @property
    def labels(self) -> Mapping[str, str]:
        return (self.metadata and self.metadata.labels) or _NOTHING

    @property
    def gates(self) -> tuple[str, ...]:
        """Returns the scheduling gates of the pod."""
        return tuple([each.name for each in (self.spec and self.spec.scheduling_gates) or ()])

    @property
    def waits_for_quota(self) -> bool:
        return names.QUOTA_GATE in self.gates

    @property
    def is_mirror(self) -> bool:
        return names.MIRROR_POD in self.annotations


class ContainerPath(NamedTuple):
    """A container and its position in the pod."""

    field: str
    number: int
    container: Container

    @property
    def where(self) -> str:
        return f"spec.{self.field}[{self.number}]"

    @property
    def pointer(self) -> tuple[str | int, ...]:
        return ("spec", self.field, self.number)


CONTAINERS, INIT_CONTAINERS, EPHEMERAL_CONTAINERS = "containers", "initContainers", "ephemeralContainers"


def places(pod: Pod) -> list[ContainerPath]:
    """Returns app containers, then init containers: all that can request a resource."""
    spec = pod.spec or _EMPTY
    return _placed(CONTAINERS, spec.containers) + _placed(INIT_CONTAINERS, spec.init_containers)


def ephemeral_places(pod: Pod) -> list[ContainerPath]:
    """Returns containers that were added to a running pod; they cannot request resources."""
    return _placed(EPHEMERAL_CONTAINERS, (pod.spec or _EMPTY).ephemeral_containers)


def _placed(field: str, containers: list[Container] | None) -> list[ContainerPath]:
    return [ContainerPath(field, number, container) for number, container in enumerate(containers or ())]
