"""Follows the ConfigMap of TKE's quota admission, which is a budget for each of its namespaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from halfcard import names
from halfcard.quota.budgets import Budget
from halfcard.quota.tke_quota_map import UNREADABLE, GpuQuotaMap, budgets_of, read_map

from ..api.access import Access
from ..api.informer import Informer
from ..api.list_watch import Collection, Undecodable, WatchEvent

_NOTHING: Final = GpuQuotaMap({}, ())


class _Metadata(msgspec.Struct):
    name: str
    uid: str


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


class TkeMapSource:
    """Calls `changed` when the budgets may have changed.

    Attributes:
        problems: one sentence for each mistake. An unreadable ConfigMap leaves the earlier budgets in force.
        uid: the uid of the ConfigMap; empty where it does not exist.
    """

    def __init__(self, access: Access, changed: Callable[[], None]) -> None:
        self.budgets: tuple[Budget, ...] = ()
        self.problems: tuple[str, ...] = ()
        self.uid = ""
        self._changed = changed
        path = f"/api/v1/namespaces/{names.KUBE_SYSTEM}/configmaps"
        collection = Collection(access, path, _ConfigMap, fields=f"metadata.name={names.GPU_QUOTA_MAP}")
        self.informer = Informer(collection, listed=self._list, changed=self._change, name="the map of quotas")

    def _list(self, objects: Sequence[_ConfigMap | Undecodable]) -> None:
        self._take(next((each for each in objects if isinstance(each, _ConfigMap)), None))

    def _change(self, changes: Sequence[WatchEvent[_ConfigMap]]) -> None:
        last = changes[-1]
        if not isinstance(last.object, Undecodable):
            self._take(None if last.type == "DELETED" else last.object)

    def _take(self, found: _ConfigMap | None) -> None:
        text = ((found and found.data) or {}).get(names.GPU_QUOTA_KEY)
        read = _NOTHING if text is None else read_map(text)
        self.uid = found.metadata.uid if found is not None else ""
        if read is None:
            self.problems = (UNREADABLE,)
            return
        self.problems, self.budgets = read.unreadable, budgets_of(read, self.uid)
        self._changed()
