"""Lists who waits in a budget, in order, and for what: the rows that its status shows. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from halfcard.problems import printable
from halfcard.quota.budget_messages import amount
from halfcard.quota.ledger import Shortage
from halfcard.quota.queueing import BlockedPod

MOST_ROWS: Final = 100
"""A status with more rows takes long to write, and they change with each pod that is admitted."""

_KEY_CHARS: Final = 100


class QueueRow(NamedTuple):
    """One waiting pod.

    Attributes:
        pod: its namespace and name.
        lacks: what is missing for it, of the amounts that it is the first to get.
        behind: the pods before it that wait for the same of other amounts.
        why: why it waits in another way: the quota cannot be checked, or the pod is outside of the queue.
    """

    pod: str
    lacks: str = ""
    behind: str = ""
    why: str = ""

    def as_status(self) -> dict[str, str]:
        return {key: value for key, value in self._asdict().items() if value}


Queues = Mapping[str, list[QueueRow]]
"""The first rows of each budget, by the name of its ledger."""


def queues(blocked: Iterable[BlockedPod], outside: Iterable[tuple[str, QueueRow]]) -> Queues:
    """Returns the pods that wait, and behind them those `outside` of the queue, each with the name of a ledger."""
    found: defaultdict[str, list[QueueRow]] = defaultdict(list)
    for ledger, row in (*((each.ledger, _row(each)) for each in blocked), *outside):
        if len(found[ledger]) < MOST_ROWS:
            found[ledger].append(row)
    return found


def _row(blocked: BlockedPod) -> QueueRow:
    before = dict.fromkeys(f"{pod.namespace}/{pod.pod}" for pod in blocked.behind.values())
    pod = f"{blocked.waiting.namespace}/{blocked.waiting.pod}"
    return QueueRow(pod, ", ".join(map(_missing, blocked.shortages)), ", ".join(before), blocked.obstacle)


def _missing(shortage: Shortage) -> str:
    return f"{printable(shortage.key, _KEY_CHARS)}={amount(shortage.key, shortage.missing)}"
