"""Chooses the decision for a write by the path of the webhook. A write that belongs to another path is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from halfcard import names
from halfcard.cluster_view import ClusterView

from .policy import AdmissionPolicy
from .resource_claims import validate_claim
from .resource_quotas import mutate_quota
from .review import mutate_pod, validate_pod
from .rules.subject import ReviewContext, ReviewStage
from .verdict import ALLOWED, Verdict
from .verdict_cache import VerdictCache
from .workloads import mutate_workload, validate_workload
from .writes import ClaimWrite, PodCreate, PodUpdate, QuotaWrite, RecordWrite, WorkloadWrite, Write

STAGES: Final[Mapping[str, ReviewStage]] = {
    names.MUTATE_PODS_PATH: ReviewStage.PROPOSED,
    names.VALIDATE_PODS_PATH: ReviewStage.FINAL,
    names.VALIDATE_RECORDS_PATH: ReviewStage.FINAL,
    names.MUTATE_WORKLOADS_PATH: ReviewStage.PROPOSED,
    names.VALIDATE_WORKLOADS_PATH: ReviewStage.TEMPLATE,
    names.MUTATE_QUOTAS_PATH: ReviewStage.PROPOSED,
    names.VALIDATE_CLAIMS_PATH: ReviewStage.FINAL,
}
"""The stage of a review, by the path of its webhook."""

_MUTATE_NEW, _VALIDATE_NEW = VerdictCache(mutate_pod), VerdictCache(validate_pod)


def decide(path: str, write: Write | None, policy: AdmissionPolicy, cluster: ClusterView) -> Verdict:
    if write is None:
        return ALLOWED
    context = ReviewContext(policy, cluster, write.namespace, write.user, STAGES[path])
    match path, write:
        case names.MUTATE_PODS_PATH, PodCreate():
            return _MUTATE_NEW(write.pod, context)
        case names.MUTATE_PODS_PATH, PodUpdate():
            return mutate_pod(write.pod, context, old=write.old, subresource=write.subresource)
        case names.VALIDATE_PODS_PATH, PodCreate():
            return _VALIDATE_NEW(write.pod, context)
        case names.VALIDATE_PODS_PATH, PodUpdate():
            return validate_pod(write.pod, context, old=write.old)
        case names.VALIDATE_RECORDS_PATH, RecordWrite():
            return validate_pod(write.pod, context, old=write.old)
    return _decide_others(path, write, context)


def _decide_others(path: str, write: Write, context: ReviewContext) -> Verdict:
    """Decides on what is no pod."""
    match path, write:
        case names.MUTATE_WORKLOADS_PATH, WorkloadWrite():
            return mutate_workload(write, context)
        case names.VALIDATE_WORKLOADS_PATH, WorkloadWrite():
            return validate_workload(write, context)
        case names.MUTATE_QUOTAS_PATH, QuotaWrite():
            return mutate_quota(write.quota, context.policy, old=write.old)
        case names.VALIDATE_CLAIMS_PATH, ClaimWrite():
            return validate_claim(write, context.policy)
    return ALLOWED
