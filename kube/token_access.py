"""Whether the owner of a bearer token may read a path, as the API server decides: TokenReview, SubjectAccessReview.

Invariants: each answer rests on a decision of the API server that is at most a minute old; one token is reviewed at a
time, so that a flood of unknown tokens becomes no flood of reviews.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from halfcard.exit_codes import UnreadableError
from halfcard.problems import printable

from .api.calls import ApiCalls
from .api.list_watch import ApiError

_PATIENCE_S: Final = 5.0
_ALLOWED_FOR_S: Final = 60.0
_DENIED_FOR_S: Final = 10.0
_MOST_KEPT: Final = 256
_SHOWN_CHARS: Final = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Denied:
    """Why a caller gets no answer, with the HTTP status that says so."""

    status: int
    why: str


class TokenOwner(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _Status(msgspec.Struct):
    user: TokenOwner = TokenOwner()
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class TokenAccess:
    def __init__(self, calls: ApiCalls, now: Callable[[], float]) -> None:
        self._calls = calls
        self._now = now
        self._turn = asyncio.Lock()
        # Two tables: unknown tokens, however many, displace no known one.
        self._allowed: dict[bytes, float] = {}
        self._denied: dict[bytes, tuple[float, Denied]] = {}

    async def denied(self, token: str, path: str) -> Denied | None:
        """Returns None if the owner of the token may read the path."""
        if not token:
            return Denied(401, "no token was sent")
        key = hashlib.sha256(f"{path} {token}".encode()).digest()
        if self._is_allowed(key):
            return None
        try:
            async with asyncio.timeout(_PATIENCE_S), self._turn:
                return self._kept(key) or await self._reviewed(key, token, path)
        except (UnreadableError, TimeoutError, msgspec.MsgspecError) as error:
            why = printable(str(error), _SHOWN_CHARS) or f"no answer within {_PATIENCE_S:g} s"
            return Denied(503, f"the API server did not say whether the token may read it: {why}")

    async def _reviewed(self, key: bytes, token: str, path: str) -> Denied | None:
        found = await self._ask(token, path)
        if found is None:
            _keep(self._allowed, key, self._now() + _ALLOWED_FOR_S)
        else:
            _keep(self._denied, key, (self._now() + _DENIED_FOR_S, found))
        return found

    def _is_allowed(self, key: bytes) -> bool:
        return self._allowed.get(key, 0.0) > self._now()

    def _kept(self, key: bytes) -> Denied | None:
        until, found = self._denied.get(key, (0.0, None))
        return found if until > self._now() else None

    async def _ask(self, token: str, path: str) -> Denied | None:
        user = (await self._review("authentication.k8s.io", "TokenReview", {"token": token})).user
        if not user.username:
            return Denied(401, "the API server does not know the token")
        if (await self._review("authorization.k8s.io", "SubjectAccessReview", may_read(user, path))).allowed:
            return None
        return Denied(403, f"{printable(user.username, _SHOWN_CHARS)} may not get {path}")

    async def _review(self, group: str, kind: str, spec: Mapping[str, Any]) -> _Status:
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        answer = await self._calls.post(f"/apis/{group}/v1/{kind.lower()}s", msgspec.json.encode(body))
        if answer.status != 201:
            raise ApiError(f"{kind}: HTTP {answer.status}: {answer.message()}")
        return msgspec.json.decode(answer.body, type=_Review).status


def may_read(user: TokenOwner, path: str) -> Mapping[str, Any]:
    """Returns the spec of a SubjectAccessReview: may the user get this path?"""
    return {
        "user": user.username,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra,
        "nonResourceAttributes": {"path": path, "verb": "get"},
    }


def _keep(table: dict[bytes, T], key: bytes, value: T) -> None:
    """Adds an entry; the oldest one leaves a full table."""
    table.pop(key, None)
    if len(table) >= _MOST_KEPT:
        del table[next(iter(table))]
    table[key] = value
