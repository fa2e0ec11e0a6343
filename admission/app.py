"""The webhook's HTTP application: a FastAPI app, and before it the hot paths as raw ASGI applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from halfcard.cluster import ClusterView
from serving.log import Log

from .dispatch import DECISIONS
from .endpoint import Endpoint
from .metrics import Metrics
from .policy import Policy


def admission_app(*, policy: Policy, cluster: Callable[[], ClusterView], metrics: Metrics, log: Log) -> ASGIApp:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    return Direct(app, {path: Endpoint(path, policy, cluster, metrics, log) for path in DECISIONS})


class Direct:
    """Hands a request to its endpoint before any routing; what has none goes on to the application."""

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, ASGIApp]) -> None:
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoints.get(scope.get("path", ""), self._app)(scope, receive, send)
