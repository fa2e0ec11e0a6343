"""Lists one collection of an API server in pages, then watches its changes.

Invariant: each change after the list's version is delivered once and in order; if the server has discarded it, the
collection is listed again. One undecodable object affects only itself.
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from halfcard.exit_codes import UnreadableError
from halfcard.problems import printable

from .access import Access
from .kept_connection import Answer

PAGE: Final = 100
"""Objects in one answer: their size is not known in advance."""

LIST_TIMEOUT_S: Final = 30.0
WATCH_LENGTH_S: Final = 300
SILENCE_S: Final = 90.0
"""A watch without a line for so long may be dead: the server sends a bookmark every minute."""


T = TypeVar("T")


class ApiError(UnreadableError):
    """The API server refused; the text has its message."""


class ExpiredError(ApiError):
    """The API server has discarded the version to resume from."""


class ListForbiddenError(ApiError):
    """The user may not read the collection."""


class AbsentError(ApiError):
    """The API server has no such collection."""


class Undecodable(NamedTuple):
    """An object that cannot be decoded: its names as far as readable, and the reason."""

    namespace: str
    name: str
    uid: str
    why: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{place or '(without a name)'} is left out: {self.why}"


class WatchEvent(NamedTuple, Generic[T]):
    """A change of one object: ADDED, MODIFIED or DELETED."""

    type: str
    object: T | Undecodable


def decoded(changes: Iterable[WatchEvent[T]]) -> Iterator[tuple[T, bool]]:
    """Yields the objects that could be decoded, and whether each of them was deleted."""
    for change in changes:
        if not isinstance(change.object, Undecodable):
            yield change.object, change.type == "DELETED"


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continues: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Names(msgspec.Struct, rename="camel"):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct):
    metadata: _Names = msgspec.field(default_factory=_Names)


class _Refusal(msgspec.Struct):
    message: str = ""
    code: int = 0


_PAGES: Final = msgspec.json.Decoder(_Page)
_LINES: Final = msgspec.json.Decoder(_Line)
_NAMED: Final = msgspec.json.Decoder(_Named)


class Collection(Generic[T]):
    """A collection, optionally reduced by a field selector; for one thread, except `abandon` and `interrupt`."""

    def __init__(self, access: Access, path: str, item: type[T], page: int = PAGE, fields: str = "") -> None:
        self._access = access
        self._path = path
        self._chosen = {"fieldSelector": fields} if fields else {}
        self._page_size = page
        self._decode = msgspec.json.Decoder(item).decode
        self._open: http.client.HTTPConnection | None = None
        self._abandoned = False

    def pages(self) -> Iterator[tuple[list[T | Undecodable], str]]:
        """Yields all objects page by page, each page with the version of the whole list."""
        token: str | None = ""
        while token is not None:
            page = self._page({"limit": str(self._page_size), **({"continue": token} if token else {})})
            yield [self._item(raw) for raw in page.items or ()], page.metadata.resource_version
            token = page.metadata.continues or None

    def _page(self, query: dict[str, str]) -> _Page:
        with self._get(query, LIST_TIMEOUT_S) as answer:
            return _PAGES.decode(answer.read())

    def _item(self, raw: msgspec.Raw) -> T | Undecodable:
        try:
            return self._decode(raw)
        except msgspec.MsgspecError as error:
            known = _names(raw)
            return Undecodable(known.namespace, known.name, known.uid, printable(str(error)))

    @contextmanager
    def watch(self, version: str) -> Iterator[Iterator[tuple[str, WatchEvent[T] | None]]]:
        """Yields the changes after a version until the server or a time-out ends the watch; entered when the server
        agreed.

        Each line is a version to resume from, empty where it is missing, and a change, or None for a bookmark.
        """
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_LENGTH_S),
        }
        with self._get(query, SILENCE_S) as answer:
            yield self._changes(answer)

    def _changes(self, answer: http.client.HTTPResponse) -> Iterator[tuple[str, WatchEvent[T] | None]]:
        with suppress(TimeoutError):
            while line := answer.readline():
                event = _LINES.decode(line)
                yield _names(event.object).resource_version, self._change(event)

    def _change(self, line: _Line) -> WatchEvent[T] | None:
        if line.type == "ERROR":
            refusal = msgspec.json.decode(line.object, type=_Refusal, strict=False)
            raise _as_error(refusal.code, refusal.message, "a watch")
        return None if line.type == "BOOKMARK" else WatchEvent(line.type, self._item(line.object))

    def abandon(self) -> None:
        """Ends the waiting call and every later one; callable from another thread."""
        self._abandoned = True
        self.interrupt()

    def resume(self) -> None:
        """Allows calls again; the abandoned call must have ended."""
        self._abandoned = False

    def interrupt(self) -> None:
        """Ends the waiting call; callable from another thread."""
        connection = self._open
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                # the TLS socket's own shutdown is not thread-safe
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    @contextmanager
    def _get(self, query: dict[str, str], timeout_s: float) -> Iterator[http.client.HTTPResponse]:
        asked_at = time.monotonic()
        try:
            answer = self._ask(query, timeout_s)
            if self._access.logs_in_again(answer.status, asked_at):
                self._close()
                answer = self._ask(query, timeout_s)
            if answer.status != http.client.OK:
                refused = Answer(answer.status, answer.read())
                raise _as_error(refused.status, refused.message(), f"GET {self._path}")
            yield answer
        finally:
            self._close()

    def _ask(self, query: dict[str, str], timeout_s: float) -> http.client.HTTPResponse:
        headers = self._access.headers()  # before the connection: a login may wait for the user
        connection = self._open = self._access.connect(timeout_s)
        connection.connect()
        if self._abandoned:  # checked when the socket exists: from now on `abandon` finds it
            raise ConnectionAbortedError("abandoned")
        self._access.get(connection, f"{self._path}?{urlencode(query | self._chosen)}", headers)
        return connection.getresponse()

    def _close(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()


def _names(raw: msgspec.Raw) -> _Names:
    try:
        return _NAMED.decode(raw).metadata
    except msgspec.MsgspecError:
        return _Names()


_ERRORS: Final = {403: ListForbiddenError, 404: AbsentError, 410: ExpiredError}


def _as_error(status: int, message: str, call: str) -> ApiError:
    text = f"the API server answered {status} to {call}: {message or '(no message)'}"
    return _ERRORS.get(status, ApiError)(text)
