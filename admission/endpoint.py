"""One webhook as a raw ASGI application: read the body, decide, answer. Nothing else stands on the hot path.

Whose fault a failure is decides its status: the caller's protocol 4xx, the user's object 200 with `allowed: false`,
our own bug 500 with a reference that the log explains.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
import traceback
import types
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from halfcard.cluster import ClusterView
from halfcard.problems import printable
from serving.log import Log

from . import wire
from .dispatch import decide
from .metrics import Metrics
from .policy import Policy
from .review import Verdict

_JSON: Final = b"application/json"
_TIMEOUT: Final = re.compile(rb"(?:^|&)timeout=([0-9]{1,3}(?:\.[0-9]{1,9})?)s(?:&|$)")
_LONGEST_SENTENCE: Final = 400
"""It may quote the caller, in a log line and in an answer."""

_LONGEST_NAME: Final = 253
_LONGEST_READ_S: Final = 30.0
"""The API server never waits longer for a webhook."""


class Refused(Exception):
    """The request cannot be read; status and a sentence for the caller."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    path: str
    policy: Policy
    cluster: Callable[[], ClusterView]
    metrics: Metrics
    log: Log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.metrics.in_flight += 1
        try:
            status, content_type, body = await self._respond(scope, receive)
        finally:
            self.metrics.in_flight -= 1
        await _send(send, status, content_type, body)

    async def _respond(self, scope: Scope, receive: Receive) -> tuple[int, bytes, bytes]:
        try:
            check_head(scope)
            body = await _body_in_time(scope, receive)
            return 200, _JSON, self._judge(body)
        except Refused as refused:
            return self._failed(refused.status, str(refused))
        except wire.Malformed as malformed:
            return self._failed(400, str(malformed))
        except Exception:  # noqa: BLE001 - whatever our bug is, the caller gets an answer
            return self._bug()

    def _judge(self, body: bytes) -> bytes:
        start = time.perf_counter()
        review = wire.read(body)
        verdict = decide(self.path, review, self.policy, self.cluster())
        answer = wire.answer(review, verdict)
        seconds = time.perf_counter() - start
        self.metrics.decided(self.path, verdict, seconds)
        self._log(review.request, verdict, seconds)
        return answer

    def _log(self, request: wire.Request, verdict: Verdict, seconds: float) -> None:
        self.log.event(
            "judged",
            webhook=self.path,
            uid=_short(request.uid),
            operation=_short(request.operation),
            kind=_short(request.kind.kind),
            namespace=_short(request.namespace),
            name=_short(request.name),
            allowed=verdict.allowed,
            codes=[problem.code for problem in verdict.problems],
            changes=len(verdict.changes),
            ms=round(seconds * 1000, 3),
        )

    def _failed(self, status: int, why: str) -> tuple[int, bytes, bytes]:
        sentence = printable(why, _LONGEST_SENTENCE)
        self.metrics.failed(status)
        self.log.warning("unreadable request", webhook=self.path, status=status, why=sentence)
        return status, b"text/plain; charset=utf-8", sentence.encode("utf-8", "replace") + b"\n"

    def _bug(self) -> tuple[int, bytes, bytes]:
        """The trace goes to the log, the caller gets what is needed to find it there."""
        reference = secrets.token_hex(4)
        self.metrics.failed(500)
        self.log.error("bug", webhook=self.path, reference=reference, trace=traceback.format_exc())
        sentence = f"Halfcard failed on this object. This is a bug; its log has the reason under {reference}.\n"
        return 500, b"text/plain; charset=utf-8", sentence.encode()


def _short(name: str | None) -> str | None:
    """Kubernetes has no longer names; whoever calls us directly may."""
    return name and name[:_LONGEST_NAME]


def check_head(scope: Scope) -> None:
    if scope["method"] != "POST":
        raise Refused(405, f"use POST, not {scope['method']}")
    is_typed = False
    for name, value in scope["headers"]:
        if name == b"content-type":
            is_typed = True
            if value.split(b";", 1)[0].strip().lower() != _JSON:
                raise Refused(415, f"send Content-Type: application/json, not {value.decode('latin-1')[:80]!r}")
        elif name == b"content-length" and value.isdigit() and int(value[:20]) > wire.MAX_BODY_BYTES:
            raise _too_large()
    if not is_typed:
        raise Refused(415, "send Content-Type: application/json")


async def _body_in_time(scope: Scope, receive: Receive) -> bytes:
    """A body that is there at once, as nearly all are, arms no timer: that would cost more than any rule."""
    reading = _body(receive)
    try:
        waiting_for = reading.send(None)
    except StopIteration as whole:
        return bytes(whole.value)
    patience = _patience(scope.get("query_string", b""))
    try:
        async with asyncio.timeout(patience):
            return await _rest(reading, waiting_for)
    except TimeoutError:
        raise Refused(408, f"the body was not complete within {patience:g} s") from None


@types.coroutine
def _rest(reading: Coroutine[Any, Any, bytes], waiting_for: Any) -> Generator[Any, Any, bytes]:
    """Goes on with what has begun and now waits."""
    yield waiting_for
    return (yield from reading.__await__())


def _patience(query: bytes) -> float:
    wanted = _TIMEOUT.search(query)
    return min(float(wanted[1]), _LONGEST_READ_S) if wanted else _LONGEST_READ_S


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the caller went away before the body was complete")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > wire.MAX_BODY_BYTES:
            raise _too_large()
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large() -> Refused:
    return Refused(413, f"the body is larger than {wire.MAX_BODY_BYTES} bytes")


async def _send(send: Send, status: int, content_type: bytes, body: bytes) -> None:
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    if status == 405:
        headers.append((b"allow", b"POST"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
