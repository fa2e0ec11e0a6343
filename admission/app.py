"""The webhook's HTTP application: a FastAPI app whose hot paths are raw ASGI routes."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI
from starlette.routing import Route

from halfcard.cluster import ClusterView
from serving.log import Log

from .dispatch import DECISIONS
from .endpoint import Endpoint
from .metrics import Metrics
from .policy import Policy


def admission_app(*, policy: Policy, cluster: Callable[[], ClusterView], metrics: Metrics, log: Log) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    for path in DECISIONS:
        app.router.routes.append(Route(path, Endpoint(path, policy, cluster, metrics, log)))
    return app
