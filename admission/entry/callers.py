"""Refuses calls whose path has no accepted caller token, before their bodies are read.

No token is logged: neither an accepted one nor what a caller sent.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from halfcard.caller_tokens import Tokens, is_accepted, read_tokens, split_path
from serving.errors import CannotServeError
from serving.log import Log

from ..metrics import WebhookMetrics

POLL_S: Final = 3.0
_REPORT_EVERY_S: Final = 10.0
_REFUSAL: Final = (
    b"this path has no valid caller token; only the API server, which was given one, may call this webhook\n"
)
_HEADERS: Final = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(_REFUSAL)),
    (b"connection", b"close"),  # the rest of the body is not read
]


class TokenFile:
    """The accepted tokens, read again while the file changes; an unusable file changes nothing."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self.accepted: Tokens = self._read()
        except (OSError, ValueError) as error:
            raise CannotServeError(f"caller tokens: {error}") from error

    def _read(self) -> Tokens:
        found = read_tokens(self._file.read_bytes())
        if not found:
            raise ValueError(f"{self._file} contains no token: a line has 64 letters of 0-9 and a-f")
        return found

    async def watch(self, log: Log) -> None:
        logged = ""
        while True:
            await asyncio.sleep(POLL_S)
            logged = self.reload(log, logged)

    def reload(self, log: Log, logged: str = "") -> str:
        """Reads the file; returns the problem, which is logged unless it is `logged` already."""
        try:
            found = self._read()
        except (OSError, ValueError) as error:
            if str(error) != logged:
                log.warning("caller tokens not read", reason=str(error))
            return str(error)
        if found != self.accepted:
            self.accepted = found
            log.event("caller tokens swapped", accepted=len(found))
        return ""


@dataclass(slots=True, eq=False)
class ProvenCallers:
    """Passes on what has an accepted token, with the path behind it."""

    app: ASGIApp
    tokens: TokenFile
    metrics: WebhookMetrics
    log: Log
    _refused: int = field(default=0, init=False)
    _logged_at: float = field(default=float("-inf"), init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            token, scope["path"] = split_path(scope["path"])
            if not is_accepted(token, self.tokens.accepted):
                await self._refuse(scope, send)
                return
        await self.app(scope, receive, send)

    async def _refuse(self, scope: Scope, send: Send) -> None:
        self.metrics.failed(403)
        self._refused += 1
        self._report(scope)
        await send({"type": "http.response.start", "status": 403, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _REFUSAL})

    def _report(self, scope: Scope) -> None:
        """Logs at most one line in ten seconds, with the last caller's address."""
        now = asyncio.get_running_loop().time()
        if now - self._logged_at < _REPORT_EVERY_S:
            return
        caller = (scope.get("client") or ("unknown",))[0]
        self.log.warning("calls refused: no valid caller token", calls=self._refused, last_caller=caller)
        self._refused, self._logged_at = 0, now
