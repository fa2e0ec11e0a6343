"""Decodes what a request wants to write, once: each kind of write that is judged is a type of its own.

Whether a pod is new, whether its namespace is exempt, and whether it mirrors a static pod is asked here alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from halfcard import names
from halfcard.dra.resource_claims import CLAIM_KINDS, requested_classes
from halfcard.pod.holders import HeldPod, held_pods, known_kind
from halfcard.pod.spec import Pod, PodMetadata
from halfcard.quota.native_quota import ResourceQuota
from halfcard.quota.native_scopes import QuotaPod

from .policy import AdmissionPolicy
from .wire import MalformedReview, ReviewRequest


class MalformedObject(MalformedReview):
    """The object does not have the shape of its kind; `why` names the field."""

    def __init__(self, kind: str, why: msgspec.ValidationError) -> None:
        super().__init__(f"the object does not have the shape of a {kind}: {why}")
        self.why = str(why)


class _OwnedObject(msgspec.Struct, frozen=True):
    metadata: PodMetadata | None = None


@dataclass(frozen=True)
class _JudgedWrite:
    request: ReviewRequest

    @property
    def namespace(self) -> str:
        return self.request.namespace or ""

    @property
    def user(self) -> str:
        return self.request.user_info.username


@dataclass(frozen=True)
class _PodWrite(_JudgedWrite):
    pod: Pod

    @cached_property
    def stored(self) -> QuotaPod:
        """The pod with its identity, for quotas; decoded only where a quota applies."""
        return _quota_pod(self.request.object)


class PodCreate(_PodWrite):
    """A new pod."""


@dataclass(frozen=True)
class PodUpdate(_PodWrite):
    """A change of a stored pod, also by its subresources `ephemeralcontainers` and `resize`."""

    old: Pod

    @property
    def subresource(self) -> str:
        return self.request.sub_resource or ""

    @property
    def old_stored(self) -> QuotaPod:
        return _quota_pod(self.request.old_object)


@dataclass(frozen=True)
class RecordWrite(_JudgedWrite):
    """A Binding or a status, whose annotations become those of the pod; `pod` has no more than they have."""

    pod: Pod
    old: Pod | None


class WrittenTemplate(NamedTuple):
    """A pod template in an object; `old` is what was there before the write."""

    held: HeldPod
    pod: Pod
    old: Pod | None


@dataclass(frozen=True)
class WorkloadWrite(_JudgedWrite):
    """An object of a kind that contains pod templates; `kind` is that of `halfcard/pod/holders.py`."""

    kind: str
    templates: tuple[WrittenTemplate, ...]
    is_new: bool


@dataclass(frozen=True)
class QuotaWrite(_JudgedWrite):
    """A ResourceQuota; `old` is None where it is new."""

    quota: ResourceQuota
    old: ResourceQuota | None


@dataclass(frozen=True)
class ClaimWrite(_JudgedWrite):
    """A new ResourceClaim or its template: the device classes, each with its field. Both are immutable."""

    classes: list[tuple[str, str]]


Write = PodCreate | PodUpdate | RecordWrite | WorkloadWrite | QuotaWrite | ClaimWrite


def decode_write(request: ReviewRequest, policy: AdmissionPolicy) -> Write | None:
    """Returns the write; None where nothing is judged: another operation or kind, an exempt namespace, the mirror of a
    static pod, or an object of a controller.

    Raises:
        MalformedReview: an object is missing, or does not have the shape of its kind.
    """
    if request.operation not in ("CREATE", "UPDATE") or (request.namespace or "") in policy.exempt_namespaces:
        return None
    if request.object is None:
        raise MalformedReview(f"the body holds no object for {request.operation}")
    if request.operation == "UPDATE" and request.old_object is None:
        raise MalformedReview("the body holds no old object for UPDATE")
    try:
        return _write(request, policy)
    except msgspec.ValidationError as error:
        raise MalformedObject(request.kind.kind, error) from error


def _write(request: ReviewRequest, policy: AdmissionPolicy) -> Write | None:
    obj, old = request.object, request.old_object if request.operation == "UPDATE" else None
    match request.kind.kind, request.sub_resource or "":
        case ("Pod", "" | "ephemeralcontainers" | "resize"):
            pod = msgspec.convert(obj, Pod)
            if _is_static(pod, request):
                return None
            return PodCreate(request, pod) if old is None else PodUpdate(request, pod, msgspec.convert(old, Pod))
        case ("Pod", "status") | ("Binding", "" | "binding"):
            pod = msgspec.convert(obj, Pod)
            return None if _is_static(pod, request) else RecordWrite(request, pod, msgspec.convert(old, Pod | None))
        case ("ResourceQuota", ""):
            return QuotaWrite(request, msgspec.convert(obj, ResourceQuota), msgspec.convert(old, ResourceQuota | None))
        case (kind, "") if kind in CLAIM_KINDS:
            return ClaimWrite(request, requested_classes(kind, obj)) if old is None else None
        case (kind, "") if known := known_kind(policy.pod_templates, request.kind.group, kind):
            paths = policy.pod_templates[known]
            return (
                None if _is_controlled(obj) else WorkloadWrite(request, known, _templates(paths, obj, old), old is None)
            )
    return None


def _is_static(pod: Pod, request: ReviewRequest) -> bool:
    """Returns whether the pod mirrors a static pod that runs already. The annotation counts only from its kubelet."""
    return pod.is_mirror and request.user_info.username.startswith(names.NODE_USERS)


def _is_controlled(obj: Any) -> bool:
    """Returns whether a controller owns the object: its owner was judged, and the controller cannot fix it."""
    metadata = msgspec.convert(obj, _OwnedObject).metadata
    return metadata is not None and metadata.has_controller


def _templates(paths: Sequence[str], obj: Any, old: Any) -> tuple[WrittenTemplate, ...]:
    before = {each.root: _pod(each) for each in held_pods(old, paths)}
    return tuple(WrittenTemplate(each, _pod(each), before.get(each.root)) for each in held_pods(obj, paths))


def _pod(held: HeldPod) -> Pod:
    try:
        return msgspec.convert(held.pod, Pod)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        path = held.path(where.strip("`").removeprefix("$").removeprefix("."))
        raise msgspec.ValidationError(f"{what} - at `$.{path}`") from None


def _quota_pod(obj: Any) -> QuotaPod:
    try:
        return msgspec.convert(obj, QuotaPod)
    except msgspec.ValidationError as error:
        raise MalformedObject("Pod", error) from error
