"""Refuses pods that the API server's own quota plugin would refuse, with a message that says how much is missing.

The plugin enforces, and runs after the webhooks. Invariant: no pod is refused that the plugin would store; where the
state is unknown, or not known in time, the plugin decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from halfcard.pod.request_totals import pod_cost
from halfcard.quantity import InvalidQuantity
from halfcard.quota.native_messages import exceeded_message, units
from halfcard.quota.native_quota import ExceededQuota, ResourceQuota, exceeded_by
from halfcard.quota.native_scopes import QuotaPod
from kube.quota.native_quota_source import NativeQuotas

from ..policy import AdmissionPolicy
from ..verdict import NoRoom, Verdict
from ..writes import PodCreate, PodUpdate, Write
from .live_quotas import LiveQuotas
from .refusal_events import Refused


class NativePrecheck:
    """Checks new pods; `refused` is called for refused pods, except in a dry run."""

    def __init__(self, known: NativeQuotas, live: LiveQuotas, policy: AdmissionPolicy, refused: Refused) -> None:
        self._known = known
        self._live = live
        self._policy = policy
        self._refused = refused
        self._units = units(policy.dialects, policy.derived)

    async def __call__(self, write: Write, verdict: Verdict, _until: float) -> Verdict:
        known = self._known.of(write.namespace)
        if not known or not _may_be_charged(write):
            return verdict
        pod, before = write.stored, write.old_stored if isinstance(write, PodUpdate) else None
        if not self._short(known, pod, before):
            return verdict
        live = await self._live.read(write.namespace) or ()
        short = self._short(live, pod, before)
        if not short:
            return verdict
        message = exceeded_message(short, self._units)
        if not write.request.dry_run:
            first = next(each for each in live if each.title == short[0].title)
            self._refused(first, write.namespace, pod.meta, message)
        return verdict._replace(no_room=NoRoom(message))

    def _short(self, quotas: Iterable[ResourceQuota], pod: QuotaPod, before: QuotaPod | None) -> list[ExceededQuota]:
        charged = [each for each in quotas if each.counts(pod) and not (before is not None and each.counts(before))]
        try:
            return exceeded_by(charged, pod_cost(pod, self._policy.counted))
        except InvalidQuantity:
            return []


def _may_be_charged(write: Write) -> TypeGuard[PodCreate | PodUpdate]:
    """Returns whether native quota may charge the write. An update may add or remove a deadline, and so
    put the pod under other quotas; a resize does not change GPU amounts.
    """
    return isinstance(write, PodCreate) or (isinstance(write, PodUpdate) and not write.subresource)
