"""Objects of the API server, by single calls: a write lands on the very version that was read, or not at all."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, Protocol

import msgspec

from certs.chains import ObjectPath
from certs.objects import Object
from halfcard.problems import printable
from kube.api.calls import Answer, ApiCalls

JSON_PATCH: Final = "application/json-patch+json"
_PROBLEM_CHARS: Final = 300
_OUTRUN: Final = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)


class StoreError(Exception):
    """The API server refused; the text is a sentence."""


class ForbiddenError(StoreError):
    """The account may not."""


class Store(Protocol):
    """Reads and writes objects; a write returns False where another writer was first."""

    async def read(self, place: ObjectPath) -> Object | None: ...

    async def create(self, place: ObjectPath, item: Object) -> bool: ...

    async def replace(self, place: ObjectPath, item: Object) -> bool: ...

    async def patch(self, place: ObjectPath, operations: bytes) -> bool: ...


class ApiStore:
    """Calls raise StoreError and NoAnswerError; after the latter, a write may have landed."""

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
        return _landed("making", place, answer, (HTTPStatus.CONFLICT,))

    async def replace(self, place: ObjectPath, item: Object) -> bool:
        return _landed("writing", place, await self._calls.put(str(place), msgspec.json.encode(item)))

    async def patch(self, place: ObjectPath, operations: bytes) -> bool:
        return _landed("writing", place, await self._calls.patch(str(place), operations, JSON_PATCH))


def _landed(act: str, place: ObjectPath, answer: Answer, outrun: tuple[HTTPStatus, ...] = _OUTRUN) -> bool:
    if answer.status in outrun:
        return False
    if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise _refused(act, place, answer)
    return True


def _refused(act: str, place: ObjectPath, answer: Answer) -> StoreError:
    kind = ForbiddenError if answer.status == HTTPStatus.FORBIDDEN else StoreError
    words = answer.message() or "without a word"
    return kind(printable(f"{act} {place.name}: the API server answered {answer.status}: {words}", _PROBLEM_CHARS))
