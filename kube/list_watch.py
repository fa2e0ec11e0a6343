"""One collection of an API server: all of it in pages, then every change as it happens.

The law: a change is seen once and in order from the version of the list on; where the server has forgotten that
version it says so, and the collection is listed again.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from .access import Access

PAGE: Final = 100
"""Objects in one answer: decoding holds the interpreter, and calls are answered beside us."""

LIST_TIMEOUT_S: Final = 30.0
WATCH_LENGTH_S: Final = 300
SILENCE_S: Final = 90.0
"""A watch that is silent for so long may be dead: the server sends a bookmark every minute."""

_GONE: Final = 410


class ApiError(Exception):
    """The API server refused, in its own words."""


class ExpiredError(ApiError):
    """The version that we know is too old to go on from."""


class Change(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str
    object: dict[str, Any]


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continues: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[dict[str, Any]] | None = None


class _Refusal(msgspec.Struct):
    message: str = ""
    code: int = 0


_PAGES: Final = msgspec.json.Decoder(_Page)
_CHANGES: Final = msgspec.json.Decoder(Change)


class Collection:
    """One collection; used by one thread, except `abandon`."""

    def __init__(self, access: Access, path: str) -> None:
        self._access = access
        self._path = path
        self._open: http.client.HTTPConnection | None = None

    def pages(self) -> Iterator[tuple[list[dict[str, Any]], str]]:
        """Everything, some at a time, each with the version that the whole has."""
        token: str | None = ""
        while token is not None:
            page = self._page({"limit": str(PAGE), **({"continue": token} if token else {})})
            yield page.items or [], page.metadata.resource_version
            token = page.metadata.continues or None

    def _page(self, query: dict[str, str]) -> _Page:
        with self._get(query, LIST_TIMEOUT_S) as answer:
            return _PAGES.decode(answer.read())

    @contextmanager
    def watch(self, version: str) -> Iterator[Iterator[Change]]:
        """What happens after a version, until the server or silence ends it; entered when the server agreed."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_LENGTH_S),
        }
        with self._get(query, SILENCE_S) as answer:
            yield _changes(answer)

    def abandon(self) -> None:
        """Ends a waiting call from another thread."""
        connection = self._open
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)  # TLS's own is not for two threads

    @contextmanager
    def _get(self, query: dict[str, str], timeout_s: float) -> Iterator[http.client.HTTPResponse]:
        connection = self._open = self._access.connect(timeout_s)
        try:
            connection.request(
                "GET", f"{self._access.prefix}{self._path}?{urlencode(query)}", headers=self._access.headers()
            )
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise _refused(answer.status, answer.read(), self._path)
            yield answer
        finally:
            self._open = None
            connection.close()


def _changes(answer: http.client.HTTPResponse) -> Iterator[Change]:
    with suppress(TimeoutError):
        while line := answer.readline():
            yield _checked(_CHANGES.decode(line))


def _checked(change: Change) -> Change:
    if change.type == "ERROR":
        raise _as_error(msgspec.convert(change.object, _Refusal, strict=False), "a watch")
    return change


def _refused(status: int, body: bytes, path: str) -> ApiError:
    try:
        refusal = msgspec.json.decode(body, type=_Refusal)
    except msgspec.MsgspecError:
        refusal = _Refusal()
    refusal.code = status
    return _as_error(refusal, f"GET {path}")


def _as_error(refusal: _Refusal, call: str) -> ApiError:
    text = f"the API server answered {refusal.code} to {call}: {refusal.message or 'without a word'}"
    return ExpiredError(text) if refusal.code == _GONE else ApiError(text)
