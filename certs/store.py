"""Reads and writes single objects of the API server; a write replaces the version that was read, or fails."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, Protocol

import msgspec

from certs.chains import ObjectPath
from certs.objects import Object
from halfcard.exit_codes import UnreadableError
from halfcard.problems import printable
from kube.api.calls import Answer, ApiCalls

JSON_PATCH: Final = "application/json-patch+json"
_CONFLICTS: Final = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)


class StoreError(UnreadableError):
    """The API server refused a call; the text is a sentence."""


class ForbiddenError(StoreError):
    """The account lacks the right."""


class Store(Protocol):
    """Reads and writes objects; a write returns False where another writer was first."""

    async def read(self, place: ObjectPath) -> Object | None: ...

    async def create(self, place: ObjectPath, item: Object) -> bool: ...

    async def replace(self, place: ObjectPath, item: Object) -> bool: ...

    async def patch(self, place: ObjectPath, operations: bytes) -> bool: ...


class ApiStore:
    """Calls raise StoreError and NoAnswerError; after the latter, the write may have been stored."""

    def __init__(self, calls: ApiCalls) -> None:
        self._calls = calls

    async def read(self, place: ObjectPath) -> Object | None:
        answer = await self._calls.get(str(place))
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        if answer.status != HTTPStatus.OK:
            raise _refused("reading", place, answer)
        return msgspec.json.decode(answer.body, type=Object)

    async def create(self, place: ObjectPath, item: Object) -> bool:
        answer = await self._calls.post(place.collection, msgspec.json.encode(item))
        return _is_written("making", place, answer, (HTTPStatus.CONFLICT,))

    async def replace(self, place: ObjectPath, item: Object) -> bool:
        return _is_written("writing", place, await self._calls.put(str(place), msgspec.json.encode(item)))

    async def patch(self, place: ObjectPath, operations: bytes) -> bool:
        return _is_written("writing", place, await self._calls.patch(str(place), operations, JSON_PATCH))


def _is_written(act: str, place: ObjectPath, answer: Answer, conflicts: tuple[HTTPStatus, ...] = _CONFLICTS) -> bool:
    if answer.status in conflicts:
        return False
    if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise _refused(act, place, answer)
    return True


def _refused(act: str, place: ObjectPath, answer: Answer) -> StoreError:
    kind = ForbiddenError if answer.status == HTTPStatus.FORBIDDEN else StoreError
    message = answer.message() or "(no message)"
    return kind(printable(f"{act} {place.name}: the API server answered {answer.status}: {message}"))
