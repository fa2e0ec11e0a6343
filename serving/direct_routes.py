"""Routes hot paths before any other routing."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send


class DirectRoutes:
    """Passes a request to the endpoint of its path, or else to the application."""

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, ASGIApp]) -> None:
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoints.get(scope.get("path", ""), self._app)(scope, receive, send)
