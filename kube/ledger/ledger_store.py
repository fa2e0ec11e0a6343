"""Stores ledgers in the API server: each is a ConfigMap in Halfcard's namespace, replaced by compare-and-set.

Invariant: a write replaces exactly the version that was read, or nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from halfcard.problems import printable
from halfcard.quota.budgets import LEDGER_PREFIXES
from halfcard.quota.ledger import Ledger

from ..api.access import Access
from ..api.calls import TIMEOUT_S, Answer, ApiCalls
from ..api.informer import Informer
from ..api.list_watch import Collection, Undecodable, WatchEvent, decoded

_KEY: Final = "ledger"
_WRITER: Final = "writer"
_FORMAT: Final = "format"
_OUR_FORMAT: Final = "1"
"""The format of the value of `ledger`. Replicas of two versions may run side by side for a while."""

_CHANGED_MEANWHILE: Final = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)
_LEDGER: Final = msgspec.json.Decoder(Ledger)
_MAX_PLAIN_CHARS: Final = 64 * 1024
"""Longer texts are compressed: 1,000 reservations take 42 kB instead of 114 kB."""

_FASTEST_LEVEL: Final = 1


class ConfigMapMetadata(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    resource_version: str = ""


class ConfigMap(msgspec.Struct, rename="camel"):
    metadata: ConfigMapMetadata
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}
    api_version: str = "v1"
    kind: str = "ConfigMap"


_CONFIG_MAP: Final = msgspec.json.Decoder(ConfigMap)


class LedgerError(Exception):
    """The API server refused, or the stored object is not a valid ledger; the text is a sentence."""


class StoredLedger(NamedTuple):
    """A ledger and the version that it was read in."""

    ledger: Ledger
    version: str


def is_newer(version: str, than: str) -> bool:
    """Compares two versions of one object; each write raises the version."""
    return int(version) > int(than)


class LedgerStore:
    """Reads and writes ledgers. Calls raise LedgerError and NoAnswerError; after the latter, a write may be stored."""

    def __init__(self, calls: ApiCalls, namespace: str) -> None:
        self._calls = calls
        self._collection = _collection(namespace)

    async def read(self, name: str, timeout_s: float = TIMEOUT_S) -> StoredLedger | None:
        """Reads the ledger by a quorum read; None where it does not exist."""
        answer = await self._calls.get(f"{self._collection}/{name}", timeout_s=timeout_s)
        return None if answer.status == HTTPStatus.NOT_FOUND else _stored(name, answer)

    async def create(self, name: str, ledger: Ledger) -> StoredLedger | None:
        """Creates a ledger; None where one exists already."""
        answer = await self._calls.post(self._collection, _body(name, ledger))
        return None if answer.status == HTTPStatus.CONFLICT else _stored(name, answer)

    async def write(
        self, name: str, ledger: Ledger, replaced: StoredLedger, timeout_s: float = TIMEOUT_S, *, writer: str = ""
    ) -> StoredLedger | None:
        """Replaces a ledger; None where another writer changed or deleted it. Watches show the name of the `writer`."""
        body = _body(name, ledger, replaced.version, writer)
        answer = await self._calls.put(f"{self._collection}/{name}", body, timeout_s=timeout_s)
        return None if answer.status in _CHANGED_MEANWHILE else _stored(name, answer, ledger)

    async def delete(self, name: str, deleted: StoredLedger) -> None:
        """Deletes a ledger, unless another writer has changed it meanwhile."""
        body = msgspec.json.encode({"preconditions": {"resourceVersion": deleted.version}})
        answer = await self._calls.delete(f"{self._collection}/{name}", body)
        if answer.status not in (HTTPStatus.OK, *_CHANGED_MEANWHILE):
            raise _refused(name, answer)


class WatchedLedger(NamedTuple):
    """A ledger from a watch event; decoded when it is needed."""

    name: str
    content: ConfigMap

    @property
    def version(self) -> str:
        return self.content.metadata.resource_version

    @property
    def writer(self) -> str:
        """The name that the writer gave; empty where it gave none."""
        return self.content.data.get(_WRITER, "")

    def read(self) -> StoredLedger | None:
        """Decodes the ledger; None for invalid content, of which `LedgerStore.read` gives the reason."""
        with suppress(LedgerError):
            return _read(self.name, self.content)
        return None


class LedgerWatch:
    """Calls `changed` with the name of each ledger that changed, and with the ledger; None where it was deleted."""

    def __init__(self, access: Access, namespace: str, changed: Callable[[str, WatchedLedger | None], None]) -> None:
        self._changed = changed
        self._known: set[str] = set()
        collection = Collection(access, _collection(namespace), ConfigMap)
        self.informer = Informer(collection, listed=self._list, changed=self._change, name="ledgers")

    def _list(self, found: Sequence[ConfigMap | Undecodable]) -> None:
        readable = [each for each in found if isinstance(each, ConfigMap)]
        for name in self._known.difference(each.metadata.name for each in readable):
            self._drop(name)
        for each in readable:
            self._put(each)

    def _change(self, changes: Sequence[WatchEvent[ConfigMap]]) -> None:
        for ledger, is_deleted in decoded(changes):
            if is_deleted:
                self._drop(ledger.metadata.name)
            else:
                self._put(ledger)

    def _put(self, found: ConfigMap) -> None:
        name = found.metadata.name
        if name.startswith(LEDGER_PREFIXES):
            self._known.add(name)
            self._changed(name, WatchedLedger(name, found))

    def _drop(self, name: str) -> None:
        if name in self._known:
            self._known.remove(name)
            self._changed(name, None)


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _body(name: str, ledger: Ledger, version: str = "", writer: str = "") -> bytes:
    return msgspec.json.encode(to_config_map(ConfigMapMetadata(name, version), ledger, writer))


def to_config_map(metadata: ConfigMapMetadata, ledger: Ledger, writer: str = "") -> ConfigMap:
    text = msgspec.json.encode(ledger)
    signed = {_FORMAT: _OUR_FORMAT, **({_WRITER: writer} if writer else {})}
    if len(text) <= _MAX_PLAIN_CHARS:
        return ConfigMap(metadata, data={_KEY: text.decode(), **signed})
    return ConfigMap(metadata, data=signed, binary_data={_KEY: zlib.compress(text, _FASTEST_LEVEL)})


def _text(found: ConfigMap) -> bytes | str:
    compressed = found.binary_data.get(_KEY)
    return found.data.get(_KEY, "") if compressed is None else zlib.decompress(compressed)


def _stored(name: str, answer: Answer, written: Ledger | None = None) -> StoredLedger:
    if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise _refused(name, answer)
    try:
        found = _CONFIG_MAP.decode(answer.body)
    except msgspec.MsgspecError as error:
        raise LedgerError(printable(f"ledger {name}: the answer does not come from an API server: {error}")) from error
    return _read(name, found) if written is None else StoredLedger(written, found.metadata.resource_version)


def _read(name: str, found: ConfigMap) -> StoredLedger:
    if (form := found.data.get(_FORMAT, _OUR_FORMAT)) != _OUR_FORMAT:
        what = f'ConfigMap {name}: got format "{form}"; this version reads only "{_OUR_FORMAT}"'
        raise LedgerError(printable(f"{what}; run the same version of all parts of Halfcard"))
    try:
        return StoredLedger(_LEDGER.decode(_text(found)), found.metadata.resource_version)
    except (msgspec.MsgspecError, zlib.error) as error:
        what = f"ConfigMap {name} is not a valid ledger: {error}; delete it, and Halfcard creates it again"
        raise LedgerError(printable(what)) from error


def _refused(name: str, answer: Answer) -> LedgerError:
    words = answer.message() or "no message"
    return LedgerError(printable(f"ledger {name}: the API server answered {answer.status}: {words}"))
