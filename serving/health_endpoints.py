"""The plain listener's application: /healthz (alive), /readyz (named checks with reasons) and /metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from halfcard import names
from serving.lifecycle import Lifecycle

Check = Callable[[], str | None]
"""Returns None if ready, else the reason; it reads only known state, without I/O."""


def health_app(*, checks: Mapping[str, Check], lifecycle: Lifecycle, registry: CollectorRegistry) -> Starlette:
    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return Starlette(routes=[*health_routes(checks, lifecycle), Route(names.METRICS_PATH, metrics)])


def health_routes(checks: Mapping[str, Check], lifecycle: Lifecycle) -> list[Route]:
    """Returns the routes /healthz and /readyz, for an application that has others too."""
    all_checks = {"running": lambda: "the process is stopping" if lifecycle.stopping else None, **checks}

    async def alive(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        reasons = {name: _reason(check) for name, check in all_checks.items()}
        is_ready = not any(reasons.values())
        body = {"ready": is_ready, "checks": {name: reason or "ok" for name, reason in reasons.items()}}
        return JSONResponse(body, status_code=200 if is_ready else 503)

    return [Route(names.HEALTH_PATH, alive), Route(names.READY_PATH, ready)]


def _reason(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a broken check means not ready, not a 500
        return f"the check failed: {type(error).__name__}"
