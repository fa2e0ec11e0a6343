"""Chooses the decision for a request. Unknown kinds and operations are allowed, explicitly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from halfcard import names
from halfcard.cluster_view import ClusterView
from halfcard.pod.spec import Pod
from halfcard.quota.native_quota import ResourceQuota

from .mutation.resource_quotas import mutate_quota
from .mutation.workloads import TEMPLATES, mutate_workload, validate_workload
from .policy import AdmissionPolicy
from .review import ALLOWED, Verdict, mutate_pod, validate_pod
from .rules.subject import ReviewContext, ReviewStage
from .verdict_cache import VerdictCache
from .wire import MalformedReview, Review, ReviewRequest

Decision = Callable[[ReviewRequest, AdmissionPolicy, ClusterView], Verdict]

_WHOLE_PODS: Final = frozenset({("Pod", ""), ("Pod", "ephemeralcontainers"), ("Pod", "resize")})
_SIDE_DOORS: Final = frozenset({("Binding", "binding"), ("Binding", ""), ("Pod", "status")})
"""To a pod's annotations: those of a Binding are merged into the pod, and a status brings metadata along."""

_MUTATE_NEW, _VALIDATE_NEW = VerdictCache(mutate_pod), VerdictCache(validate_pod)


def decide(path: str, review: Review, policy: AdmissionPolicy, cluster: ClusterView) -> Verdict:
    request = review.request
    if request.operation not in ("CREATE", "UPDATE") or (request.namespace or "") in policy.exempt_namespaces:
        return ALLOWED
    if request.object is None:
        raise MalformedReview(f"the body holds no object for {request.operation}")
    try:
        return DECISIONS[path](request, policy, cluster)
    except msgspec.ValidationError as error:
        raise MalformedReview(f"the object does not have the shape of a {request.kind.kind}: {error}") from error


def _pod(request: ReviewRequest, judged: frozenset[tuple[str, str]]) -> tuple[Pod, Pod | None] | None:
    """The pod, or as much of it as a Binding says, and what it was; None for what is not judged here."""
    if (request.kind.kind, request.sub_resource or "") not in judged:
        return None
    old = msgspec.convert(request.old_object, Pod) if request.old_object is not None else None
    return msgspec.convert(request.object, Pod), old


def _around(request: ReviewRequest, policy: AdmissionPolicy, cluster: ClusterView, stage: ReviewStage) -> ReviewContext:
    return ReviewContext(policy, cluster, request.namespace or "", request.user_info.username, stage)


def _mutate_pods(request: ReviewRequest, policy: AdmissionPolicy, cluster: ClusterView) -> Verdict:
    read = _pod(request, _WHOLE_PODS)
    if read is None:
        return ALLOWED
    pod, old = read
    around = _around(request, policy, cluster, ReviewStage.PROPOSED)
    if old is None:
        return _MUTATE_NEW(pod, around)
    return mutate_pod(pod, around, old=old, subresource=request.sub_resource or "")


def _validate_pods(request: ReviewRequest, policy: AdmissionPolicy, cluster: ClusterView) -> Verdict:
    read = _pod(request, _WHOLE_PODS)
    if read is None:
        return ALLOWED
    pod, old = read
    around = _around(request, policy, cluster, ReviewStage.FINAL)
    return _VALIDATE_NEW(pod, around) if old is None else validate_pod(pod, around, old=old)


def _validate_records(request: ReviewRequest, policy: AdmissionPolicy, cluster: ClusterView) -> Verdict:
    read = _pod(request, _SIDE_DOORS)
    if read is None:
        return ALLOWED
    return validate_pod(read[0], _around(request, policy, cluster, ReviewStage.FINAL), old=read[1])


def _mutate_workloads(request: ReviewRequest, policy: AdmissionPolicy, cluster: ClusterView) -> Verdict:
    if request.kind.kind not in TEMPLATES or request.sub_resource:
        return ALLOWED
    around = _around(request, policy, cluster, ReviewStage.PROPOSED)
    return mutate_workload(request.kind.kind, request.object, around, old=request.old_object)


def _validate_workloads(request: ReviewRequest, policy: AdmissionPolicy, cluster: ClusterView) -> Verdict:
    if request.kind.kind not in TEMPLATES or request.sub_resource:
        return ALLOWED
    around = _around(request, policy, cluster, ReviewStage.TEMPLATE)
    return validate_workload(request.kind.kind, request.object, around, old=request.old_object)


def _mutate_quotas(request: ReviewRequest, policy: AdmissionPolicy, _cluster: ClusterView) -> Verdict:
    if request.kind.kind != "ResourceQuota" or request.sub_resource:
        return ALLOWED
    old = msgspec.convert(request.old_object, ResourceQuota) if request.old_object is not None else None
    return mutate_quota(msgspec.convert(request.object, ResourceQuota), policy, old=old)


DECISIONS: Final[Mapping[str, Decision]] = {
    names.MUTATE_PODS_PATH: _mutate_pods,
    names.VALIDATE_PODS_PATH: _validate_pods,
    names.VALIDATE_RECORDS_PATH: _validate_records,
    names.MUTATE_WORKLOADS_PATH: _mutate_workloads,
    names.VALIDATE_WORKLOADS_PATH: _validate_workloads,
    names.MUTATE_QUOTAS_PATH: _mutate_quotas,
}
