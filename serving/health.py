"""The plain listener's application: /healthz (alive), /readyz (named checks with reasons) and /metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from halfcard import names
from serving.lifecycle import Lifecycle

# None when all is well, else why not. Checks only look at what the process already knows: they do no I/O.
Check = Callable[[], str | None]


def health_app(*, checks: Mapping[str, Check], lifecycle: Lifecycle, registry: CollectorRegistry) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    all_checks = {"running": _running(lifecycle), **checks}

    @app.get(names.HEALTH_PATH)
    async def alive() -> Response:
        return PlainTextResponse("ok\n")

    @app.get(names.READY_PATH)
    async def ready() -> Response:
        reasons = {name: _reason(check) for name, check in all_checks.items()}
        is_ready = not any(reasons.values())
        body = {"ready": is_ready, "checks": {name: reason or "ok" for name, reason in reasons.items()}}
        return JSONResponse(body, status_code=200 if is_ready else 503)

    @app.get(names.METRICS_PATH)
    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return app


def _running(lifecycle: Lifecycle) -> Check:
    return lambda: "the process is stopping" if lifecycle.stopping else None


def _reason(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a broken check means not ready, not a 500
        return f"the check failed: {type(error).__name__}"
