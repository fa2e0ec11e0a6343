"""Follows the ResourceQuotas of a cluster that name GPU resources, and reads them and their pods directly."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from http import HTTPStatus
from typing import Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from halfcard.exit_codes import UnreadableError
from halfcard.quota.native_quota import ResourceQuota
from halfcard.quota.native_scopes import QuotaPod

from ..api.access import Access
from ..api.calls import TIMEOUT_S, ApiCalls
from ..api.informer import Informer
from ..api.list_watch import Collection as Followed
from ..api.list_watch import Undecodable, WatchEvent, decoded

_PAGE: Final = 500

T = TypeVar("T")


class NativeQuotas:
    """The quotas that name a `counted` resource, while `informer` runs.

    Attributes:
        resources: the GPU resources; people also write keys of them that Kubernetes does not count.
        counted: these, and the resources that are added to pods so that quotas count them.
    """

    def __init__(self, access: Access, resources: frozenset[str], added: frozenset[str] = frozenset()) -> None:
        self.resources = resources
        self.counted = resources | added
        self._by_namespace: dict[str, dict[str, ResourceQuota]] = {}
        self._uncounted: dict[str, ResourceQuota] = {}
        self.informer = Informer(
            Followed(access, "/api/v1/resourcequotas", ResourceQuota, _PAGE),
            listed=self._list,
            changed=self._change,
            name="resourcequotas",
        )

    def of(self, namespace: str) -> Collection[ResourceQuota]:
        return self._by_namespace.get(namespace, {}).values()

    def namespaces(self) -> Collection[str]:
        """Returns the namespaces with such a quota."""
        return self._by_namespace.keys()

    def uncounted(self) -> list[ResourceQuota]:
        """Returns the quotas that Kubernetes does not count, or counts in part."""
        return [*self._uncounted.values()]

    def _list(self, found: Sequence[ResourceQuota | Undecodable]) -> None:
        self._by_namespace.clear()
        self._uncounted.clear()
        for each in found:
            if isinstance(each, ResourceQuota):
                self._put(each)

    def _change(self, changes: Sequence[WatchEvent[ResourceQuota]]) -> None:
        for quota, is_deleted in decoded(changes):
            self._drop(quota)
            if not is_deleted:
                self._put(quota)

    def _put(self, found: ResourceQuota) -> None:
        if found.names(self.counted):
            self._by_namespace.setdefault(found.meta.namespace or "", {})[found.meta.title] = found
        if found.uncounted(self.resources):
            self._uncounted[found.title] = found

    def _drop(self, found: ResourceQuota) -> None:
        namespace = found.meta.namespace or ""
        there = self._by_namespace.get(namespace, {})
        there.pop(found.meta.title, None)
        self._uncounted.pop(found.title, None)
        if not there:
            self._by_namespace.pop(namespace, None)


# --- direct reads -----------------------------------------------------------------------------------------------------


class _Meta(msgspec.Struct):
    continues: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct, Generic[T]):
    metadata: _Meta
    items: list[T] | None = None


_QUOTAS: Final = msgspec.json.Decoder(_List[ResourceQuota])
_PODS: Final = msgspec.json.Decoder(_List[QuotaPod])


class ReadError(UnreadableError):
    """The API server refused, or its answer cannot be read; the text is a sentence."""

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.status = status


async def quotas_in(calls: ApiCalls, namespace: str, timeout_s: float = TIMEOUT_S) -> list[ResourceQuota]:
    """Reads the quotas of a namespace by a quorum. Raises ReadError and NoAnswerError."""
    return await _all(calls, path_of(namespace), _QUOTAS, timeout_s)


async def quotas_anywhere(calls: ApiCalls) -> list[ResourceQuota]:
    """Reads the quotas of all namespaces like `quotas_in`."""
    return await _all(calls, "/api/v1/resourcequotas", _QUOTAS)


async def pods_in(calls: ApiCalls, namespace: str) -> list[QuotaPod]:
    """Reads the pods of a namespace like `quotas_in`."""
    return await _all(calls, f"/api/v1/namespaces/{quote(namespace, safe='')}/pods", _PODS)


def path_of(namespace: str, name: str = "") -> str:
    """Returns the path of one quota, or of all in the namespace."""
    collection = f"/api/v1/namespaces/{quote(namespace, safe='')}/resourcequotas"
    return f"{collection}/{quote(name, safe='')}" if name else collection


async def _all(
    calls: ApiCalls, path: str, decoder: msgspec.json.Decoder[_List[T]], timeout_s: float = TIMEOUT_S
) -> list[T]:
    found: list[T] = []
    token: str | None = ""
    while token is not None:
        after = f"&continue={quote(token, safe='')}" if token else ""
        answer = await calls.get(f"{path}?limit={_PAGE}{after}", timeout_s=timeout_s)
        if answer.status != HTTPStatus.OK:
            why = f"the API server answered {answer.status} to GET {path}: {answer.message()}"
            raise ReadError(why, answer.status)
        try:
            page = decoder.decode(answer.body)
        except msgspec.MsgspecError as error:
            raise ReadError(f"the answer to GET {path} cannot be read: {error}") from error
        found += page.items or ()
        token = page.metadata.continues or None
    return found
