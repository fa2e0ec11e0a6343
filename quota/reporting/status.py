"""Computes the status of a quota: what is used, by which pods, and whether it is exceeded. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from halfcard.quota.amount_key import AmountKey, label_value, limit_key
from halfcard.quota.budget_messages import amount
from halfcard.quota.budgets import deleted_budget
from halfcard.quota.charge import COUNTED
from halfcard.quota.gpu_quota import Exemption
from halfcard.quota.ledger import USAGE_UNKNOWN, Amounts, Entry, Ledger, excess, sum_of, used

from ..usage_index import TOP, TopPods, rank
from .queue_rows import MOST_ROWS, QueueRow

_UNLIMITED: Final = "-"
_NOBODY: Final = TopPods()

Status = dict[str, Any]


class LedgerUsage(NamedTuple):
    """One ledger, the pods with the largest charges, and the waiting pods: their number, and the first of them."""

    ledger: Ledger
    holders: TopPods = _NOBODY
    waiting: int = 0
    queue: Sequence[QueueRow] = ()


def status_of_each(parts: Mapping[str, LedgerUsage]) -> Status:
    """Returns the status of a default quota: the sum of what its namespaces use, and the limit of each of them."""
    ledgers = {namespace: part.ledger for namespace, part in parts.items()}
    together = Ledger(
        next(iter(ledgers.values())).hard,
        is_ready=all(each.is_ready for each in ledgers.values()),
        committed=sum_of([each.committed for each in ledgers.values()]),
        reservations={uid: entry for each in ledgers.values() for uid, entry in each.reservations.items()},
        late=frozenset(uid for each in ledgers.values() for uid in each.late),
    )
    queue = [row for part in parts.values() for row in part.queue][:MOST_ROWS]
    waiting = sum(part.waiting for part in parts.values())
    said = status_of(together, _all([part.holders for part in parts.values()]), waiting, queue)
    fuller = sorted(namespace for namespace, ledger in ledgers.items() if excess(ledger))
    ready, _ = said["conditions"]
    return {**said, "perLabel": [], "conditions": [ready, _exceeded(", ".join(fuller[:TOP]), "in ")]}


def _all(parts: Sequence[TopPods]) -> TopPods:
    first = sorted((entry for part in parts for entry in part.entries), key=rank)
    return TopPods(sum(part.pods for part in parts), first[:TOP])


def exempted(status: Status, exemption: Exemption) -> Status:
    """Returns the status while the quota is suspended; used amounts are reported as usual."""
    ready, exceeded = status["conditions"]
    excess = {**exceeded, "message": f"{exceeded['message'].partition(':')[0]}, and exempt"}
    exempt = _condition("Exempt", "True", "ForAWhile", f"the quota limits nothing {exemption}")
    return {**status, "conditions": [ready, excess if exceeded["status"] == "True" else exceeded, exempt]}


def status_of(ledger: Ledger, holders: TopPods = _NOBODY, waiting: int = 0, queue: Sequence[QueueRow] = ()) -> Status:
    """Returns the status of one ledger: amounts as `used/hard` in the units of the quota, and the waiting pods."""
    found = used(ledger)
    said: Status = {key: f"{amount(key, found[key])}/{_limit(ledger, key)}" for key in COUNTED}
    return {
        **said,
        "pods": holders.pods,
        "promised": len(ledger.reservations),
        "waiting": waiting,
        "late": len(ledger.late),
        "queue": [row.as_status() for row in queue],
        "holders": [_holder(entry) for entry in holders.entries],
        "perLabel": _per_label(found, ledger),
        "places": _places(found, ledger),
        "borrowed": _loans(ledger.borrowed),
        "lent": _loans(ledger.lent),
        "conditions": _conditions(ledger),
    }


def _limit(ledger: Ledger, key: str) -> str:
    return amount(key, ledger.hard[key]) if key in ledger.hard else _UNLIMITED


def _holder(entry: Entry) -> dict[str, str]:
    amounts = {key: amount(key, entry.charge[key]) for key in COUNTED if key in entry.charge}
    return {"pod": f"{entry.namespace}/{entry.pod}", **amounts}


def _per_label(found: Mapping[str, int], ledger: Ledger) -> list[dict[str, str]]:
    """Lists the use of each label value, the largest first."""
    of_values = [key for key in found if label_value(key) is not None]
    limited = [(key, hard) for key in of_values if (hard := ledger.hard.get(limit_key(key))) is not None]
    limited.sort(key=lambda each: (-found[each[0]] / max(each[1], 1), each[0]))
    return [{"key": key, "amount": f"{amount(key, found[key])}/{amount(key, hard)}"} for key, hard in limited[:TOP]]


def _places(found: Mapping[str, int], ledger: Ledger) -> list[dict[str, str]]:
    """Lists the models and pools with limits, as the quota names them."""
    rows: dict[str, dict[str, str]] = {}
    for text, hard in sorted(ledger.hard.items()):
        key = AmountKey.parse(text)
        if key.place:
            row = rows.setdefault(key.place, {"place": key.place})
            row[key.what] = f"{amount(text, found.get(text, 0))}/{amount(text, hard)}"
    return [rows[place] for place in sorted(rows)]


def _loans(loans: Mapping[str, Amounts]) -> list[dict[str, str]]:
    return [
        {"quota": deleted_budget(name).title, **{key: amount(key, number) for key, number in amounts.items()}}
        for name, amounts in sorted(loans.items())
    ]


def _conditions(ledger: Ledger) -> list[dict[str, str]]:
    exceeded_amounts = ", ".join(f"{key}={amount(key, missing)}" for key, missing in sorted(excess(ledger).items()))
    ready = (
        _condition("Ready", "True", "Counted", "all pods are counted")
        if ledger.is_ready
        else _condition("Ready", "False", "NotCounted", f"{USAGE_UNKNOWN}; new pods must wait")
    )
    return [ready, _exceeded(exceeded_amounts, "by ")]


def _exceeded(exceeded_amounts: str, of: str) -> dict[str, str]:
    if not exceeded_amounts:
        return _condition("Exceeded", "False", "WithinLimits", "usage is within the limits")
    return _condition(
        "Exceeded", "True", "OverBy", f"over {of}{exceeded_amounts}: running pods stay, new pods are refused or wait"
    )


def _condition(sort: str, value: str, reason: str, message: str) -> dict[str, str]:
    return {"type": sort, "status": value, "reason": reason, "message": message}


def since(status: Status, before: Mapping[str, Any] | None, now: str) -> Status:
    """Adds the time of each condition's last change, kept from `before` where the condition is the same."""
    known = {each["type"]: each for each in (before or {}).get("conditions") or ()}

    def timed(condition: dict[str, str]) -> dict[str, str]:
        was = known.get(condition["type"], {})
        same = was.get("status") == condition["status"] and "lastTransitionTime" in was
        return {**condition, "lastTransitionTime": was["lastTransitionTime"] if same else now}

    return {**status, "conditions": [timed(each) for each in status["conditions"]]}


def untimed(status: Mapping[str, Any]) -> Status:
    """Returns a written status without the times that `since` adds."""
    timeless = [{key: each[key] for key in each if key != "lastTransitionTime"} for each in status["conditions"]]
    return {**status, "conditions": timeless}
