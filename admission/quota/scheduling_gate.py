"""Adds the scheduling gate to pods whose quota lets them wait; the quota service removes it when there is room."""

from __future__ import annotations

from ..repairs import quota_gate
from ..verdict import Verdict
from ..writes import PodCreate, Write
from .budget_ledgers import BudgetLedgers


class QueueGate:
    """Adds the gate. While this webhook is down no pod waits: a pod without the gate needs its reservation when it
    is created.
    """

    def __init__(self, ledgers: BudgetLedgers) -> None:
        self._ledgers = ledgers

    async def __call__(self, write: Write, verdict: Verdict, _until: float) -> Verdict:
        if not isinstance(write, PodCreate) or not self._ledgers.ready or not self._ledgers.may_gate(write.namespace):
            return verdict
        pod = write.pod
        if pod.waits_for_quota or (pod.spec and pod.spec.node_name):
            return verdict  # the API server refuses gates on a pod that has its node
        if not self._ledgers.requests_for(pod, write.namespace):
            return verdict
        return verdict._replace(changes=(*verdict.changes, quota_gate(pod)))
