"""Warns when a workload is applied and a budget has no room for all of its pods; the workload is stored
nevertheless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from halfcard.patches import value_at
from halfcard.problems import warning
from halfcard.quota.budget_messages import amount, uncountable
from halfcard.quota.ledger import Amounts, Busy, Shortage

from ..verdict import Verdict
from ..writes import WorkloadWrite, Write
from .budget_ledgers import BudgetLedgers, ReservationRequest

_COUNTS: Final[Mapping[str, str]] = {
    "apps/Deployment": "replicas",
    "apps/StatefulSet": "replicas",
    "apps/ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "batch/Job": "parallelism",
}
"""The field with the number of pods that run at once, by kind; one pod where it is not set."""


class WorkloadHints:
    def __init__(self, ledgers: BudgetLedgers) -> None:
        self._ledgers = ledgers

    async def __call__(self, write: Write, verdict: Verdict, _until: float) -> Verdict:
        """Checks a new workload only: the pods of a stored one are charged already."""
        if not isinstance(write, WorkloadWrite) or not write.is_new or write.kind not in _COUNTS:
            return verdict
        if not self._ledgers.ready or not self._ledgers.has_budgets(write.namespace):
            return verdict
        written = value_at(write.request.object, ("spec", _COUNTS[write.kind]))
        count = written if isinstance(written, int) else 1
        pods = [each.pod for each in write.templates]
        requests = [request for pod in pods for request in self._ledgers.requests_for(pod, write.namespace)]
        hints = [hint for each in requests if (hint := await _hint(each, count))]
        return verdict._replace(warnings=(*verdict.warnings, *hints))


async def _hint(request: ReservationRequest, count: int) -> str:
    if request.unknown:
        return warning(uncountable(request.budget.title, request.unknown[0]))
    cost = {key: count * amount for key, amount in request.entry.charge.items()}
    try:
        short = await request.writer.known_shortages(cost)
    except Busy:
        return ""  # each pod is checked when it is created
    return warning(f"{request.budget.title}: {_words(short, request.entry.charge, count)}") if short else ""


def _words(short: Sequence[Shortage], each: Amounts, count: int) -> str:
    fit = min(max(one.hard - one.used, 0) // each[one.key] for one in short)
    free = ", ".join(f"{one.key}={amount(one.key, max(one.hard - one.used, 0))} free" for one in short)
    return f"only {fit} of {count} pods fit: {free}"
