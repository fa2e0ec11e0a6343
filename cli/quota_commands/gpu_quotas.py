"""Reads the GpuQuotas that concern a namespace, and their statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from halfcard import names
from halfcard.quota.amount_key import AmountKey
from halfcard.quota.budgets import Budget, UnreadableBudget, read_budget
from halfcard.quota.budgets import covering as concerning_of
from halfcard.quota.charge import COUNTED
from halfcard.quota.gpu_quota import read_amounts
from halfcard.quota.ledger import Amounts, Ledger, Shortage, allowed
from kube.api.calls import Answer, ApiCalls
from kube.ledger.ledger_store import LedgerError, LedgerStore
from quota.reporting.status import exempted, status_of
from quota.reporting.usage_objects import path_of_usages

from ..inputs.cluster_state import NoClusterError
from .namespace_usages import budget_of

Object = Mapping[str, Any]

_TOLD: Final = (
    *("counts", "here", "pods", "promised", "waiting", "queue", "late", "places", "perLabel"),
    *("borrowed", "lent", "holders", "conditions"),
)
"""The fields of a status that are shown unchanged."""


class QuotaAnswer(NamedTuple):
    """One quota and its status."""

    budget: Budget
    used: Amounts
    status: Object

    def shortages(self, charge: Amounts) -> list[Shortage]:
        found = [Shortage(key, charge.get(key, 0), self.used[key], hard) for key, hard in self.allowed().items()]
        return [each for each in found if each.wanted > 0 and each.missing > 0]

    @property
    def ledger(self) -> Ledger:
        """The ledger, as far as the status shows it."""
        counted = Ledger(self.budget.hard, is_ready=True, committed=self.used, quota_uid=self.budget.uid)
        return counted._replace(lent=self._loans("lent"), borrowed=self._loans("borrowed"))

    def allowed(self) -> Amounts:
        """Returns the limits with what is borrowed and without what is lent; no limits while the quota is suspended."""
        if any(each["type"] == "Exempt" for each in self.status.get("conditions") or ()):
            return {}
        hard = allowed(self.ledger)
        return {key: hard[key] for key in COUNTED if key in hard}

    def _loans(self, sort: str) -> Mapping[str, Amounts]:
        return {each["quota"]: _amounts(each) for each in self.status.get(sort) or ()}

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.budget.kind,
            "name": self.budget.title,
            "hard": self.budget.hard,
            "used": self.used,
            "free": {key: max(hard - self.used[key], 0) for key, hard in self.allowed().items()},
            **{key: self.status[key] for key in _TOLD if key in self.status},
        }


async def concerning(calls: ApiCalls, namespace: str) -> tuple[list[QuotaAnswer], list[str]]:
    """Returns the answers, and a sentence for each unreadable quota. Raises NoClusterError and NoAnswerError."""
    space = await _get(calls, f"/api/v1/namespaces/{quote(namespace, safe='')}")
    own = (await _get(calls, f"{names.QUOTA_API}/namespaces/{namespace}/{names.GPU_QUOTAS}"))["items"]
    answer = await calls.get(f"{names.QUOTA_API}/{names.CLUSTER_GPU_QUOTAS}")
    if answer.status == HTTPStatus.FORBIDDEN:
        return await _as_members_read(calls, namespace, own)
    found, odd = _concerning(namespace, space, [*own, *_decoded(answer, names.CLUSTER_GPU_QUOTAS)["items"]])
    answers = [QuotaAnswer(budget, _used(status), status) for budget, status in found if not budget.is_default]
    defaults = [await _default(calls, budget, status) for budget, status in found if budget.is_default]
    unread = [each for each in defaults if isinstance(each, str)]
    return [*answers, *[each for each in defaults if isinstance(each, QuotaAnswer)]], [*odd, *unread]


def _concerning(
    namespace: str, space: Object, quotas: Sequence[Object]
) -> tuple[list[tuple[Budget, Object]], list[str]]:
    """Returns the quotas of a namespace with their statuses, and a sentence for each unreadable one."""
    labels = space["metadata"].get("labels") or {}
    read = [(read_budget(each), each.get("status") or {}) for each in quotas]
    statuses = {budget.uid: status for budget, status in read if isinstance(budget, Budget)}
    found = concerning_of([budget for budget, _ in read if isinstance(budget, Budget)], namespace, labels)
    odd = [str(budget) for budget, _ in read if isinstance(budget, UnreadableBudget)]
    return [(budget, statuses[budget.uid.partition("/")[0]]) for budget in found], odd


async def _as_members_read(
    calls: ApiCalls, namespace: str, own: Sequence[Object]
) -> tuple[list[QuotaAnswer], list[str]]:
    """Returns the quotas of a namespace for those who may read nothing else."""
    found, odd = _concerning(namespace, {"metadata": {}}, own)
    usages = (await _get(calls, path_of_usages(namespace)))["items"]
    hidden = [(budget_of(each), each["status"]) for each in usages if each.get("status")]
    return [QuotaAnswer(budget, _used(status), status) for budget, status in (*found, *hidden)], odd


async def namespaces(calls: ApiCalls) -> set[str]:
    """Returns the namespaces that have a GpuQuota."""
    found = await _get(calls, f"{names.QUOTA_API}/{names.GPU_QUOTAS}")
    return {each["metadata"]["namespace"] for each in found["items"]}


async def _default(calls: ApiCalls, budget: Budget, written: Object) -> QuotaAnswer | str:
    """Reads the use of a default quota in one namespace, which only its ledger has; who waits is in the status."""
    try:
        kept = await LedgerStore(calls, names.NAMESPACE).read(budget.ledger)
    except LedgerError as error:
        return f"the usage of {budget.title} cannot be read: {error}"
    ledger = kept.ledger if kept else Ledger(budget.hard)
    queue = [row for row in written.get("queue") or () if row["pod"].startswith(f"{budget.namespace}/")]
    status = status_of(ledger._replace(hard=budget.hard)) | {"queue": queue, "waiting": len(queue)}
    if budget.exemption is not None and budget.hard and not ledger.hard:
        status = exempted(status, budget.exemption)
    return QuotaAnswer(budget, _used(status), status)


async def _get(calls: ApiCalls, path: str) -> Object:
    return _decoded(await calls.get(path), path)


def _decoded(answer: Answer, what: str) -> Object:
    if answer.status != HTTPStatus.OK:
        raise NoClusterError(f"the API server answered {answer.status} to GET {what}: {answer.message()}")
    found: Object = msgspec.json.decode(answer.body)
    return found


def _used(status: Object) -> Amounts:
    """Reads the used amounts; what is not counted yet is 0, next to the condition that says so."""
    at_places = {
        str(AmountKey.at(key, each["place"])): amount
        for each in status.get("places") or ()
        for key, amount in _amounts(each).items()
    }
    return {**dict.fromkeys(COUNTED, 0), **_amounts(status), **at_places}


def _amounts(written: Object) -> Amounts:
    """Parses the used part of each `used/allowed`."""
    return read_amounts({key: str(written[key]).partition("/")[0] for key in COUNTED if key in written})
