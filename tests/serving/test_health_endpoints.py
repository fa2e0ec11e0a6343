from __future__ import annotations

import json

from prometheus_client import CollectorRegistry, Counter

from serving.health_endpoints import Check, health_app
from serving.lifecycle import Lifecycle
from tests.serving.conversation import Answer, server


async def get(path: str, *, lifecycle: Lifecycle | None = None, **checks: Check) -> Answer:
    registry = CollectorRegistry()
    Counter("halfcard_reviews", "Reviews answered.", registry=registry).inc(3)
    app = health_app(checks=checks, lifecycle=lifecycle or Lifecycle(), registry=registry)
    async with server(app) as running:
        client = await running.connect()
        return await client.ask(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())


async def test_a_living_process_is_healthy_whatever_its_checks_say() -> None:
    assert (await get("/healthz", quota=lambda: "not synced")).status == 200


async def test_ready_means_that_every_check_passes() -> None:
    answer = await get("/readyz", quota=lambda: None)
    assert answer.status == 200
    assert json.loads(answer.body) == {"ready": True, "checks": {"running": "ok", "quota": "ok"}}


async def test_a_failing_check_is_named_with_its_reason() -> None:
    answer = await get("/readyz", quota=lambda: "not synced yet", tls=lambda: None)
    assert answer.status == 503
    assert json.loads(answer.body)["checks"] == {"running": "ok", "quota": "not synced yet", "tls": "ok"}


async def test_a_broken_check_means_not_ready_without_details() -> None:
    def broken() -> str | None:
        raise KeyError("secret")

    answer = await get("/readyz", quota=broken)
    assert answer.status == 503
    assert json.loads(answer.body)["checks"]["quota"] == "the check failed: KeyError"


async def test_a_stopping_process_is_not_ready() -> None:
    lifecycle = Lifecycle()
    lifecycle.stop()
    answer = await get("/readyz", lifecycle=lifecycle)
    assert answer.status == 503
    assert json.loads(answer.body)["checks"]["running"] == "the process is stopping"


async def test_metrics_of_the_given_registry_are_served() -> None:
    answer = await get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert b"halfcard_reviews_total 3.0" in answer.body


async def test_other_paths_are_not_found() -> None:
    for path in ("/docs", "/redoc", "/openapi.json", "/"):
        assert (await get(path)).status == 404
