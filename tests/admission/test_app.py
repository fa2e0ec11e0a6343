from __future__ import annotations

import io

import pytest
from prometheus_client import CollectorRegistry

from admission.dispatch import STAGES
from admission.endpoint import admission_app
from admission.metrics import WebhookMetrics
from halfcard.cluster_view import NOTHING_KNOWN
from serving.log import Log

from .asgi import ask
from .judging import POLICY

APP = admission_app(
    policy=POLICY,
    cluster=lambda: NOTHING_KNOWN,
    metrics=WebhookMetrics(CollectorRegistry()),
    log=Log(stream=io.StringIO()),
)


@pytest.mark.parametrize("path", sorted(STAGES))
def test_every_decision_has_its_route(path: str) -> None:
    assert ask(APP, path, b"{").status == 400


@pytest.mark.parametrize("path", ["/", "/docs", "/redoc", "/openapi.json", "/metrics", "/healthz", "/mutate"])
def test_nothing_else_is_served_beside_the_webhooks(path: str) -> None:
    assert ask(APP, path, method="GET").status == 404
