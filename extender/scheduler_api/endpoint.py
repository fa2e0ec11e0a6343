"""Serves one verb as a raw ASGI application: reads the body, decides, answers.

Invariant: every failure is answered with status 200 and the reason in `Error`, since kube-scheduler drops the text of
any other status. Prioritize has no `Error`; there a failure scores all nodes alike.
"""

from __future__ import annotations

import secrets
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from halfcard.problems import printable
from serving.log import Log
from serving.request_body import JSON, RefusedRequest, body_in_time, check_head, respond

from ..metrics import ExtenderMetrics
from . import wire

_MAX_SENTENCE_CHARS = 900

Decide = Callable[[bytes, Scope], Awaitable[bytes]]
Fail = Callable[[str], bytes]


class DeclinedCall(Exception):
    """A call that is refused because of the pod or the caller, not because of a bug."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One call of the protocol.

    Attributes:
        fail: encodes an answer with an error.
        check_caller: raises DeclinedCall for a caller whose body is not to be read.
    """

    name: str
    decide: Decide
    fail: Fail
    metrics: ExtenderMetrics
    log: Log
    most_bytes: int = wire.MAX_BODY_BYTES
    check_caller: Callable[[Scope], None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        outcome, body = await self._respond(scope, receive)
        self.metrics.answered(self.name, outcome, time.perf_counter() - start)
        await respond(send, 200, JSON, body)

    async def _respond(self, scope: Scope, receive: Receive) -> tuple[str, bytes]:
        try:
            if self.check_caller is not None:
                self.check_caller(scope)
            check_head(scope, self.most_bytes)
            body = await body_in_time(scope, receive, self.most_bytes)
            return "ok", await self.decide(body, scope)
        except DeclinedCall as declined:
            return "declined", self._failed("declined", str(declined))
        except (RefusedRequest, wire.MalformedCall) as malformed:
            return "malformed", self._failed("malformed", str(malformed))
        except Exception:  # noqa: BLE001 - whatever our bug is, the scheduler gets an answer
            return "bug", self._bug()

    def _failed(self, outcome: str, why: str) -> bytes:
        sentence = printable(why, _MAX_SENTENCE_CHARS)
        self.log.warning("scheduler call failed", verb=self.name, outcome=outcome, why=sentence)
        return self.fail(sentence)

    def _bug(self) -> bytes:
        reference = secrets.token_hex(4)
        self.log.error("bug", verb=self.name, reference=reference, trace=traceback.format_exc())
        return self.fail(
            f"Halfcard failed on this pod. This is a bug; see reference {reference} in the extender's log."
        )
