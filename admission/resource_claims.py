"""The decision on ResourceClaims and their templates: those that request GPUs would bring them past every quota."""

from __future__ import annotations

from halfcard import names
from halfcard.problems import DEVICE_CLASS

from .policy import AdmissionPolicy
from .review import verdict_of
from .verdict import ALLOWED, Verdict
from .writes import ClaimWrite

_FIX = "ask for a share or for cards in the resources of the pod"


def validate_claim(write: ClaimWrite, policy: AdmissionPolicy) -> Verdict:
    """Refuses each GPU class; what the cluster makes from a template or a pod follows from what was judged."""
    if write.user in policy.trusted_users or write.user in names.CLAIM_MAKERS:
        return ALLOWED
    named = [(where, name) for where, name in write.classes if name in policy.device_classes]
    return verdict_of([DEVICE_CLASS.broken(where, name, _FIX) for where, name in named], policy)
