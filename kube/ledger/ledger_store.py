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
from ..api.list_watch import Collection, Undecodable, WatchEvent

_KEY: Final = "ledger"
_WRITER: Final = "writer"
_FORMAT: Final = "format"
_FORMAT_OF_OURS: Final = "1"
"""Of what stands under the key `ledger`. Replicas of two versions may run side by side for a while."""

_PROBLEM_CHARS: Final = 300
_OUTRUN: Final = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)
_LEDGER: Final = msgspec.json.Decoder(Ledger)
_LONGEST_TEXT: Final = 64 * 1024
"""Longer texts are compressed: 1,000 reservations take 42 kB instead of 114 kB."""

_PACKED_FAST: Final = 1


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
    """The API server refused, or what it keeps is no ledger; the text is a sentence."""


class StoredLedger(NamedTuple):
    """A ledger and the version that it was read in."""

    ledger: Ledger
    version: str


def is_newer(version: str, than: str) -> bool:
    """Versions of one object count up."""
    return int(version) > int(than)


class LedgerStore:
    """Calls raise LedgerError and NoAnswerError; after the latter, a write may have landed."""

    def __init__(self, calls: ApiCalls, namespace: str) -> None:
        self._calls = calls
        self._collection = _collection(namespace)

    async def read(self, name: str, timeout_s: float = TIMEOUT_S) -> StoredLedger | None:
        """Reads the present ledger by a quorum; None where there is none."""
        answer = await self._calls.get(f"{self._collection}/{name}", timeout_s=timeout_s)
        return None if answer.status == HTTPStatus.NOT_FOUND else _kept(name, answer)

    async def create(self, name: str, ledger: Ledger) -> StoredLedger | None:
        """Creates a ledger; None where one exists already."""
        answer = await self._calls.post(self._collection, _body(name, ledger))
        return None if answer.status == HTTPStatus.CONFLICT else _kept(name, answer)

    async def write(
        self, name: str, ledger: Ledger, over: StoredLedger, timeout_s: float = TIMEOUT_S, *, by: str = ""
    ) -> StoredLedger | None:
        """Replaces a ledger; None where another writer changed or deleted it. `by` names the writer for others."""
        body = _body(name, ledger, over.version, by)
        answer = await self._calls.put(f"{self._collection}/{name}", body, timeout_s=timeout_s)
        return None if answer.status in _OUTRUN else _kept(name, answer, ledger)

    async def delete(self, name: str, over: StoredLedger) -> None:
        """Deletes a ledger, unless another writer has changed it meanwhile."""
        body = msgspec.json.encode({"preconditions": {"resourceVersion": over.version}})
        answer = await self._calls.delete(f"{self._collection}/{name}", body)
        if answer.status not in (HTTPStatus.OK, *_OUTRUN):
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
        """Empty where it did not say."""
        return self.content.data.get(_WRITER, "")

    def read(self) -> StoredLedger | None:
        """Decodes the ledger; None for invalid content: a caller that reads it from the server gets the reason."""
        with suppress(LedgerError):
            return _read(self.name, self.content)
        return None


class FollowedLedgers:
    """Calls `saw` with each ledger by name as it changes, and with None when it is gone."""

    def __init__(self, access: Access, namespace: str, saw: Callable[[str, WatchedLedger | None], None]) -> None:
        self._saw = saw
        self._there: set[str] = set()
        collection = Collection(access, _collection(namespace), ConfigMap)
        self.following = Informer(collection, listed=self._list, changed=self._change, name="ledgers")

    def _list(self, found: Sequence[ConfigMap | Undecodable]) -> None:
        there = [each for each in found if isinstance(each, ConfigMap)]
        for name in self._there.difference(each.metadata.name for each in there):
            self._drop(name)
        for each in there:
            self._put(each)

    def _change(self, changes: Sequence[WatchEvent[ConfigMap]]) -> None:
        for change in changes:
            if isinstance(change.object, Undecodable):
                continue
            if change.type == "DELETED":
                self._drop(change.object.metadata.name)
            else:
                self._put(change.object)

    def _put(self, found: ConfigMap) -> None:
        name = found.metadata.name
        if name.startswith(LEDGER_PREFIXES):
            self._there.add(name)
            self._saw(name, WatchedLedger(name, found))

    def _drop(self, name: str) -> None:
        if name in self._there:
            self._there.remove(name)
            self._saw(name, None)


def _collection(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _body(name: str, ledger: Ledger, version: str = "", by: str = "") -> bytes:
    return msgspec.json.encode(written(ConfigMapMetadata(name, version), ledger, by))


def written(metadata: ConfigMapMetadata, ledger: Ledger, by: str = "") -> ConfigMap:
    text = msgspec.json.encode(ledger)
    signed = {_FORMAT: _FORMAT_OF_OURS, **({_WRITER: by} if by else {})}
    if len(text) <= _LONGEST_TEXT:
        return ConfigMap(metadata, data={_KEY: text.decode(), **signed})
    return ConfigMap(metadata, data=signed, binary_data={_KEY: zlib.compress(text, _PACKED_FAST)})


def _text(found: ConfigMap) -> bytes | str:
    packed = found.binary_data.get(_KEY)
    return found.data.get(_KEY, "") if packed is None else zlib.decompress(packed)


def _kept(name: str, answer: Answer, written: Ledger | None = None) -> StoredLedger:
    if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise _refused(name, answer)
    try:
        found = _CONFIG_MAP.decode(answer.body)
    except msgspec.MsgspecError as error:
        raise LedgerError(
            printable(f"ledger {name}: what answers is no API server: {error}", _PROBLEM_CHARS)
        ) from error
    return _read(name, found) if written is None else StoredLedger(written, found.metadata.resource_version)


def _read(name: str, found: ConfigMap) -> StoredLedger:
    if (form := found.data.get(_FORMAT, _FORMAT_OF_OURS)) != _FORMAT_OF_OURS:
        what = f"ConfigMap {name} is a ledger of format {form}, and this version reads {_FORMAT_OF_OURS} alone"
        raise LedgerError(printable(f"{what}: run one version of Halfcard everywhere", _PROBLEM_CHARS))
    try:
        return StoredLedger(_LEDGER.decode(_text(found)), found.metadata.resource_version)
    except (msgspec.MsgspecError, zlib.error) as error:
        what = f"ConfigMap {name} holds no ledger of Halfcard's: {error}; delete it, and it is made anew"
        raise LedgerError(printable(what, _PROBLEM_CHARS)) from error


def _refused(name: str, answer: Answer) -> LedgerError:
    words = answer.message() or "without a word"
    return LedgerError(printable(f"ledger {name}: the API server answered {answer.status}: {words}", _PROBLEM_CHARS))
