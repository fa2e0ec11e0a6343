"""One webhook as a raw ASGI application: reads the body, decides, answers. Nothing else is on the hot path.

The status depends on whose fault a failure is: 4xx for a broken protocol, 200 with `allowed: false` for a wrong object,
and 500 for a bug of ours, with a reference that finds it in the log.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from halfcard.cluster_view import ClusterView
from halfcard.problems import printable
from serving.direct_routes import DirectRoutes, nothing_here
from serving.large_bodies import LargeBodies, is_large
from serving.log import Log
from serving.request_body import (
    JSON,
    RefusedRequest,
    answer_by,
    body_in_time,
    check_head,
    respond,
    while_connected,
)

from . import wire
from .dispatch import STAGES, decide
from .entry.body_bounds import MAX_BODY_BYTES, check_cost
from .gates import Gate
from .metrics import WebhookMetrics
from .policy import AdmissionPolicy
from .verdict import Verdict
from .writes import decode_write

_LONGEST_SENTENCE: Final = 400
"""Of an error that may quote the caller, in the log and in the answer."""

_LONGEST_NAME: Final = 253


def admission_app(
    *,
    policy: AdmissionPolicy,
    cluster: Callable[[], ClusterView],
    metrics: WebhookMetrics,
    log: Log,
    gates: Mapping[str, Gate] = {},
) -> ASGIApp:
    """Returns the application with the endpoints of all webhooks in front; `gates` are by path."""
    large = LargeBodies()
    routes = {path: Endpoint(path, policy, cluster, metrics, log, large, gates.get(path)) for path in STAGES}
    return DirectRoutes(nothing_here, routes)


@dataclass(frozen=True, slots=True)
class Endpoint:
    path: str
    policy: AdmissionPolicy
    cluster: Callable[[], ClusterView]
    metrics: WebhookMetrics
    log: Log
    large: LargeBodies
    gate: Gate | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.metrics.in_flight += 1
        try:
            status, content_type, body = await self._respond(scope, receive)
        finally:
            self.metrics.in_flight -= 1
        await respond(send, status, content_type, body)

    async def _respond(self, scope: Scope, receive: Receive) -> tuple[int, bytes, bytes]:
        until = answer_by(scope, asyncio.get_running_loop().time())
        try:
            check_head(scope, MAX_BODY_BYTES)
            if not is_large(scope):
                return 200, JSON, await self._judge(await body_in_time(scope, receive, MAX_BODY_BYTES), receive, until)
            async with self.large.place(scope):
                body = await body_in_time(scope, receive, MAX_BODY_BYTES)
                check_cost(body)
                await self.large.turn()
                return 200, JSON, await self._judge(body, receive, until)
        except RefusedRequest as refused:
            return self._failed(refused.status, str(refused))
        except wire.MalformedReview as malformed:
            return self._failed(400, str(malformed))
        except Exception:  # noqa: BLE001 - whatever our bug is, the caller gets an answer
            return self._bug()

    async def _judge(self, body: bytes, receive: Receive, until: float) -> bytes:
        start = time.perf_counter()
        review = wire.read(body)
        write = decode_write(review.request, self.policy)
        verdict = decide(self.path, write, self.policy, self.cluster())
        if self.gate is not None and write is not None and verdict.allowed:
            verdict = await while_connected(receive, self.gate(write, verdict, until))
        answer = wire.answer(review, verdict)
        seconds = time.perf_counter() - start
        self.metrics.decided(self.path, verdict, seconds)
        self._log(review.request, verdict, seconds)
        return answer

    def _log(self, request: wire.ReviewRequest, verdict: Verdict, seconds: float) -> None:
        self.log.batched(
            "judged",
            webhook=self.path,
            uid=_short(request.uid),
            operation=_short(request.operation),
            kind=_short(request.kind.kind),
            namespace=_short(request.namespace),
            name=_short(request.name),
            allowed=verdict.allowed,
            codes=verdict.codes,
            warned=verdict.warned,
            changes=len(verdict.changes),
            ms=round(seconds * 1000, 3),
        )

    def _failed(self, status: int, why: str) -> tuple[int, bytes, bytes]:
        sentence = printable(why, _LONGEST_SENTENCE)
        self.metrics.failed(status)
        self.log.warning("unreadable request", webhook=self.path, status=status, why=sentence)
        return status, b"text/plain; charset=utf-8", sentence.encode("utf-8", "replace") + b"\n"

    def _bug(self) -> tuple[int, bytes, bytes]:
        """Logs the trace; the answer has a reference that finds it in the log."""
        reference = secrets.token_hex(4)
        self.metrics.failed(500)
        self.log.error("bug", webhook=self.path, reference=reference, trace=traceback.format_exc())
        sentence = f"Halfcard failed on this object. This is a bug; its log has the reason under {reference}.\n"
        return 500, b"text/plain; charset=utf-8", sentence.encode()


def _short(name: str | None) -> str | None:
    """Cuts a name for the log: Kubernetes does not allow longer names, but other callers may send them."""
    return name and name[:_LONGEST_NAME]
