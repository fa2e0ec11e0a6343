"""Routes hot paths before any other routing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from .request_body import respond

_NOTHING: Final = b"nothing is served under this path; `halfcard webhooks` prints those of the webhooks\n"


class DirectRoutes:
    """Passes a request to the endpoint of its path, or else to the application."""

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, ASGIApp]) -> None:
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoints.get(scope.get("path", ""), self._app)(scope, receive, send)


async def nothing_here(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answers 404 for a process whose every path is direct; raises for other events, which it does not support."""
    if scope["type"] != "http":
        raise NotImplementedError(scope["type"])
    await respond(send, 404, b"text/plain; charset=utf-8", _NOTHING)
