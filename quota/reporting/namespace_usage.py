"""Computes what the members of a namespace may read about a quota that is not an object of their namespace. Pure.

Invariant: it names no pod, label value or quota of another namespace.
"""

from __future__ import annotations

from typing import NamedTuple

from halfcard import names
from halfcard.quota.amount_key import label_value
from halfcard.quota.budget_messages import amount
from halfcard.quota.budgets import Budget
from halfcard.quota.charge import COUNTED
from halfcard.quota.ledger import Amounts, Ledger, allowed, sum_of, used

from ..usage_index import TopPods
from .status import Status, exempted, status_of


class NamespaceUsage(NamedTuple):
    """The part of one namespace in a ledger.

    Attributes:
        charges: the sum of the charges of its stored pods.
        waiting: how many of its pods wait with the scheduling gate.
    """

    namespace: str
    charges: Amounts
    holders: TopPods
    waiting: int = 0


def object_name(budget: Budget) -> str:
    """Returns the name of the object; a dot keeps the entry of a ConfigMap apart from a ClusterGpuQuota."""
    return f"configmap.{budget.name}" if budget.is_mapped else budget.name


def usage_of(budget: Budget, ledger: Ledger, part: NamespaceUsage, *, is_exempt: bool) -> Status:
    """Returns the status for one namespace: what all together use of what is allowed now, and what it uses itself."""
    own = {uid: entry for uid, entry in ledger.reservations.items() if entry.namespace == part.namespace}
    here = sum_of([part.charges, *[entry.charge for entry in own.values()]])
    status = status_of(_seen(ledger, budget, here), part.holders, part.waiting)
    if is_exempt and budget.exemption is not None:
        status = exempted(status, budget.exemption)
    del status["borrowed"], status["lent"], status["late"], status["queue"]
    return {
        **status,
        "promised": len(own),
        "quota": {
            "kind": budget.kind,
            "name": names.KUBE_SYSTEM + "/" + budget.name if budget.is_mapped else budget.name,
        },
        "counts": "Together" if not budget.namespace else "Namespace",
        "onExceeded": "Gate" if budget.gates else "Deny",
        "here": {key: amount(key, here[key]) for key in COUNTED},
    }


def _seen(ledger: Ledger, budget: Budget, here: Amounts) -> Ledger:
    """Returns the ledger without the label values of others, with loans among what is allowed."""
    amounts = {key: number for key, number in used(ledger).items() if label_value(key) is None or here.get(key)}
    hard = allowed(ledger._replace(hard=budget.hard))  # also of an exemption, when nothing is limited
    return Ledger(hard, is_ready=ledger.is_ready, committed=amounts)
