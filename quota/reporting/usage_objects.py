"""The stored GpuQuotaUsage objects of all namespaces, followed; those that this service no longer wants are found by
their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from halfcard import names
from kube.api.access import Access
from kube.api.informer import Informer
from kube.api.list_watch import Collection, Undecodable, WatchEvent, decoded

_COLLECTION: Final = f"{names.QUOTA_API}/{names.GPU_QUOTA_USAGES}"


class UsageKey(NamedTuple):
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"{path_of_usages(self.namespace)}/{self.name}"


class _Metadata(msgspec.Struct):
    namespace: str
    name: str


class _Usage(msgspec.Struct):
    metadata: _Metadata
    status: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def key(self) -> UsageKey:
        return UsageKey(self.metadata.namespace, self.metadata.name)


class UsageObjects:
    """
    Attributes:
        stored: the status of each object, encoded.
        changed: the objects that have changed since `changed` was cleared.
    """

    def __init__(self, access: Access) -> None:
        self.stored: dict[UsageKey, bytes] = {}
        self.changed: set[UsageKey] = set()
        self.informer = Informer(
            Collection(access, _COLLECTION, _Usage),
            listed=self._list,
            changed=self._change,
            name=names.GPU_QUOTA_USAGES,
            may_be_absent=True,
        )

    def status(self, key: UsageKey) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = msgspec.json.decode(self.stored.get(key, b"null"))
        return found

    def _list(self, found: Sequence[_Usage | Undecodable]) -> None:
        self.stored = {each.key: bytes(each.status) for each in found if isinstance(each, _Usage)}
        self.changed.update(self.stored)

    def _change(self, changes: Sequence[WatchEvent[_Usage]]) -> None:
        for usage, is_deleted in decoded(changes):
            self.changed.add(usage.key)
            if is_deleted:
                self.stored.pop(usage.key, None)
            else:
                self.stored[usage.key] = bytes(usage.status)


def path_of_usages(namespace: str) -> str:
    return f"{names.QUOTA_API}/namespaces/{namespace}/{names.GPU_QUOTA_USAGES}"
