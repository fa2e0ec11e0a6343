"""Reads a cluster once: single objects and collections; remembers which sources the user may not read.

Invariant: a missing right is reported, and everything else is still read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from halfcard.problems import printable
from kube.api.access import Access
from kube.api.calls import Answer, ApiCalls, NoAnswerError
from kube.api.list_watch import AbsentError, ApiError

from ..diagnosis.snapshot import ABSENT, Object, Probe, UnreadSource
from .cluster_state import NoClusterError, everything

_WHY_CHARS: Final = 240
_MOST_SELECTED: Final = 500
_MAY_NOT_CREATE: Final = 'cannot create resource "pods"'

T = TypeVar("T")


class Reader:
    """Reads within one event loop.

    Attributes:
        unread: what could not be read.
    """

    def __init__(self, access: Access, say: Callable[[str], None]) -> None:
        self.unread: list[UnreadSource] = []
        self.calls = ApiCalls(access)
        self._access = access
        self._say = say

    async def object(self, path: str) -> Object | None:
        """Returns an object: ABSENT if it is missing, None if the user may not read it."""
        self._say(f"reading {path}")
        try:
            answer = await self.calls.get(path)
        except NoAnswerError as error:
            raise NoClusterError(str(error)) from None
        if answer.status == HTTPStatus.NOT_FOUND:
            return ABSENT
        return self._content(f"GET {path}", answer)

    def _content(self, call: str, answer: Answer) -> Object | None:
        if answer.status != HTTPStatus.OK:
            self.note_once(call.partition("?")[0], answer.message() or f"HTTP {answer.status}")
            return None
        try:
            found: Object = msgspec.json.decode(answer.body, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise NoClusterError(f"{call}: this is not an API server: {error}") from None
        return found

    async def text(self, path: str) -> str:
        """Returns a text, such as a log; empty if it is missing, or the user may not read it."""
        self._say(f"reading {path}")
        try:
            answer = await self.calls.get(path)
        except NoAnswerError as error:
            self.note(f"GET {path}", str(error))
            return ""
        if answer.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
            self.note(f"GET {path}", answer.message())
        return answer.body.decode(errors="replace") if answer.status == HTTPStatus.OK else ""

    async def selected(self, path: str, **selector: str) -> list[Object]:
        """Reads the first few hundred objects that a selector matches; none if the user may not read the collection."""
        found = await self.object(f"{path}?{urlencode({**selector, 'limit': _MOST_SELECTED})}")
        return list((found or ABSENT).get("items") or ())

    async def collection(self, path: str, item: type[T]) -> list[T] | None:
        """Reads a whole collection: None if the user may not read it, empty for an unknown kind."""
        try:
            return await self.must(path, item, [])
        except AbsentError:
            return []
        except ApiError as error:
            self.note_once(f"GET {path}", str(error))
            return None

    async def must(self, path: str, item: type[T], left_out: list[str]) -> list[T]:
        """Reads a whole collection.

        Raises:
            ApiError: the user may not read it.
            NoClusterError: the API server does not answer.
        """
        return await asyncio.to_thread(self._all, path, item, left_out)

    def _all(self, path: str, item: type[T], left_out: list[str]) -> list[T]:
        found: list[T] = []
        for number, each in enumerate(everything(self._access, path, item, left_out)):
            if number % _MOST_SELECTED == 0:
                self._say(f"reading {path}, {number} so far")
            found.append(each)
        return found

    async def create_for_show(self, path: str, item: Mapping[str, Any]) -> Probe | None:
        """Creates an object as a dry run; returns None if the user may not create it, or without an answer."""
        self._say(f"creating a pod at {path} as a dry run")
        try:
            answer = await self.calls.post(f"{path}?dryRun=All", msgspec.json.encode(item))
        except NoAnswerError as error:
            self.note(f"POST {path}", str(error))
            return None
        if answer.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED) and _MAY_NOT_CREATE in answer.message():
            self.note(f"POST {path}", answer.message())
            return None
        return Probe(answer.status, answer.message())

    def note_once(self, what: str, why: str) -> None:
        if all(each.what != what for each in self.unread):
            self.note(what, why)

    def note(self, what: str, why: str) -> None:
        self.unread.append(UnreadSource(what, printable(why, _WHY_CHARS)))
