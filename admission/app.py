"""The webhook's HTTP application: a FastAPI app, with the hot paths in front as raw ASGI applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import FastAPI
from starlette.types import ASGIApp

from halfcard.cluster_view import ClusterView
from serving.direct_routes import DirectRoutes
from serving.log import Log

from .dispatch import DECISIONS
from .endpoint import Endpoint
from .gates import Gate
from .metrics import WebhookMetrics
from .policy import AdmissionPolicy


def admission_app(
    *,
    policy: AdmissionPolicy,
    cluster: Callable[[], ClusterView],
    metrics: WebhookMetrics,
    log: Log,
    gates: Mapping[str, Gate] = {},
) -> ASGIApp:
    """`gates` are by path."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    return DirectRoutes(
        app, {path: Endpoint(path, policy, cluster, metrics, log, gates.get(path)) for path in DECISIONS}
    )
