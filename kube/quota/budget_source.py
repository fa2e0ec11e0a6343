"""The GpuQuota and ClusterGpuQuota objects of a cluster and the labels of its namespaces, followed together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.quota.budgets import Budget, UnreadableBudget, covering, expand_defaults, read_budget
from halfcard.quota.gpu_quota import Labels
from halfcard.quota.ledger import Amounts
from halfcard.quota.lending import reach

from ..api.access import Access
from ..api.informer import FollowJob, Informer, follow_jobs
from ..api.list_watch import Collection, Undecodable, WatchEvent, decoded
from .tke_map_source import TkeMapSource

_NAMESPACES: Final = "/api/v1/namespaces"
_SORTS: Final = (names.GPU_QUOTAS, names.CLUSTER_GPU_QUOTAS)

Object = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace (empty for cluster-wide objects) and name."""


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None


class _Namespace(msgspec.Struct):
    metadata: _Metadata


class BudgetSource:
    """The budgets, while `jobs` run; calls `changed` when budgets or namespaces have changed.

    If the two kinds are not installed, there are no budgets, and this is no error.

    Attributes:
        map: the budgets of the ConfigMap of TKE's quota admission.
    """

    def __init__(self, access: Access, changed: Callable[[], None] = lambda: None) -> None:
        self._read: dict[str, dict[Key, Budget | UnreadableBudget]] = {sort: {} for sort in _SORTS}
        self.map = TkeMapSource(access, self._forget)
        self._labels: dict[str, Labels] = {}
        self._concerning: dict[str, tuple[Budget, ...]] = {}
        self._reach: dict[str, Amounts] = {}
        self._each: list[Budget] | None = None
        self._changed = changed
        self._quotas = [self._followed(access, sort) for sort in _SORTS]
        self._namespaces = Informer(
            Collection(access, _NAMESPACES, _Namespace),
            listed=self._list_namespaces,
            changed=self._change_namespaces,
            name="namespaces",
        )

    def _followed(self, access: Access, sort: str) -> Informer[dict[str, Any]]:
        def take(objects: Sequence[dict[str, Any] | Undecodable]) -> None:
            self._read[sort] = {_key(each): read_budget(each) for each in objects if isinstance(each, dict)}
            self._forget()

        def change(changes: Sequence[WatchEvent[dict[str, Any]]]) -> None:
            """Ignores changes of the status, which may come every second."""
            before = dict(self._read[sort])
            for quota, is_deleted in decoded(changes):
                if is_deleted:
                    self._read[sort].pop(_key(quota), None)
                else:
                    self._read[sort][_key(quota)] = read_budget(quota)
            if before != self._read[sort]:
                self._forget()

        collection = Collection(access, f"{names.QUOTA_API}/{sort}", dict[str, Any])
        return Informer(collection, listed=take, changed=change, name=sort, may_be_absent=True)

    def _list_namespaces(self, found: Sequence[_Namespace | Undecodable]) -> None:
        self._labels = {
            each.metadata.name: each.metadata.labels or {} for each in found if isinstance(each, _Namespace)
        }
        self._forget()

    def _change_namespaces(self, changes: Sequence[WatchEvent[_Namespace]]) -> None:
        for namespace, is_deleted in decoded(changes):
            if is_deleted:
                self._labels.pop(namespace.metadata.name, None)
            else:
                self._labels[namespace.metadata.name] = namespace.metadata.labels or {}
        self._forget()

    def _forget(self) -> None:
        self._concerning.clear()
        self._reach.clear()
        self._each = None
        self._changed()

    def _following(self) -> list[Informer[Any]]:
        return [*self._quotas, self._namespaces, self.map.informer]

    # --- the known budgets --------------------------------------------------------------------------------------------

    def budgets(self) -> list[Budget]:
        """Returns all budgets, with each default replaced by one budget per namespace."""
        if self._each is None:
            self._each = expand_defaults(self._written(), self._labels)
        return self._each

    def _written(self) -> list[Budget]:
        written = [each for sort in self._read.values() for each in sort.values() if isinstance(each, Budget)]
        return [*written, *self.map.budgets]

    def of(self, namespace: str) -> tuple[Budget, ...]:
        """Returns the budgets of a namespace, in the order in which ledgers are written."""
        found = self._concerning.get(namespace)
        if found is None:
            found = covering(self._written(), namespace, self._labels.get(namespace, {}))
            if namespace in self._labels:  # callers may name any
                self._concerning[namespace] = found
        return found

    def reach(self, budget: Budget) -> Amounts:
        """Returns the most that a budget can ever allow, with all possible loans; no limits while it is exempt."""
        if budget.is_exempt(datetime.now(UTC)):
            return {}
        if budget.terms is None:
            return budget.hard
        found = self._reach.get(budget.ledger)
        if found is None:
            others = [(each.hard, each.terms) for each in self.budgets() if each != budget and each.terms]
            found = self._reach[budget.ledger] = reach(budget.hard, budget.terms, others)
        return found

    def namespaces(self, budget: Budget) -> list[str]:
        """Returns the namespaces that the budget covers."""
        return [budget.namespace] if budget.namespace else [name for name in self._labels if budget in self.of(name)]

    @property
    def ready(self) -> bool:
        """Whether all objects have been listed once."""
        return all(each.ready for each in self._following())

    async def wait_until_ready(self) -> None:
        for each in self._following():
            await each.wait_until_ready()

    def problems(self) -> tuple[str, ...]:
        troubles = (each.trouble for each in self._following())
        odd = (
            f"{each}" for sort in self._read.values() for each in sort.values() if isinstance(each, UnreadableBudget)
        )
        return (*filter(None, troubles), *odd, *self.map.problems)

    def jobs(self) -> list[FollowJob]:
        return follow_jobs(self._following())


def _key(obj: Object) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
