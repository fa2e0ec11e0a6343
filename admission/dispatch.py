"""Chooses the decision for a write by the path of the webhook. A write that belongs to another path is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from halfcard import names
from halfcard.cluster_view import ClusterView

from .policy import AdmissionPolicy
from .resource_quotas import mutate_quota
from .review import mutate_pod, validate_pod
from .rules.subject import ReviewContext, ReviewStage
from .verdict import ALLOWED, Verdict
from .verdict_cache import VerdictCache
from .workloads import mutate_workload, validate_workload
from .writes import PodCreate, PodUpdate, QuotaWrite, RecordWrite, WorkloadWrite, Write

Decision = Callable[[Write, ReviewContext], Verdict]

_MUTATE_NEW, _VALIDATE_NEW = VerdictCache(mutate_pod), VerdictCache(validate_pod)


def decide(path: str, write: Write | None, policy: AdmissionPolicy, cluster: ClusterView) -> Verdict:
    if write is None:
        return ALLOWED
    stage, decision = DECISIONS[path]
    return decision(write, ReviewContext(policy, cluster, write.namespace, write.user, stage))


def _mutate_pods(write: Write, context: ReviewContext) -> Verdict:
    if isinstance(write, PodCreate):
        return _MUTATE_NEW(write.pod, context)
    if isinstance(write, PodUpdate):
        return mutate_pod(write.pod, context, old=write.old, subresource=write.subresource)
    return ALLOWED


def _validate_pods(write: Write, context: ReviewContext) -> Verdict:
    if isinstance(write, PodCreate):
        return _VALIDATE_NEW(write.pod, context)
    return validate_pod(write.pod, context, old=write.old) if isinstance(write, PodUpdate) else ALLOWED


def _validate_records(write: Write, context: ReviewContext) -> Verdict:
    return validate_pod(write.pod, context, old=write.old) if isinstance(write, RecordWrite) else ALLOWED


def _mutate_workloads(write: Write, context: ReviewContext) -> Verdict:
    return mutate_workload(write, context) if isinstance(write, WorkloadWrite) else ALLOWED


def _validate_workloads(write: Write, context: ReviewContext) -> Verdict:
    return validate_workload(write, context) if isinstance(write, WorkloadWrite) else ALLOWED


def _mutate_quotas(write: Write, context: ReviewContext) -> Verdict:
    return mutate_quota(write.quota, context.policy, old=write.old) if isinstance(write, QuotaWrite) else ALLOWED


DECISIONS: Final[Mapping[str, tuple[ReviewStage, Decision]]] = {
    names.MUTATE_PODS_PATH: (ReviewStage.PROPOSED, _mutate_pods),
    names.VALIDATE_PODS_PATH: (ReviewStage.FINAL, _validate_pods),
    names.VALIDATE_RECORDS_PATH: (ReviewStage.FINAL, _validate_records),
    names.MUTATE_WORKLOADS_PATH: (ReviewStage.PROPOSED, _mutate_workloads),
    names.VALIDATE_WORKLOADS_PATH: (ReviewStage.TEMPLATE, _validate_workloads),
    names.MUTATE_QUOTAS_PATH: (ReviewStage.PROPOSED, _mutate_quotas),
}
