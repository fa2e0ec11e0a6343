"""The agent's HTTP application: usage for people and for Prometheus, on gpu-manager's paths and on ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

import halfcard
from halfcard import names
from serving.health_endpoints import Check, health_routes
from serving.lifecycle import Lifecycle

from .usage import usage_metrics
from .usage.usage_json import usage_json
from .usage.usage_report import NodeUsageReport
from .usage.usage_text import usage_text

_JSON: Final = "application/json"


def agent_app(
    usage: Callable[[], Awaitable[NodeUsageReport]],
    *,
    checks: Mapping[str, Check],
    lifecycle: Lifecycle,
    registry: CollectorRegistry,
) -> Starlette:
    async def metrics(_: Request) -> Response:
        text = usage_metrics.write(await usage()).encode() + generate_latest(registry)
        return Response(text, headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    async def usage_page(request: Request) -> Response:
        found = await usage()
        if _wants_json(request):
            return Response(usage_json(found), media_type=_JSON)
        return PlainTextResponse(usage_text(found))

    async def version(_: Request) -> Response:
        return JSONResponse({"version": halfcard.__version__})

    return Starlette(
        routes=[
            *health_routes(checks, lifecycle),
            Route(names.METRICS_PATH, metrics),
            Route(names.GPU_MANAGER_METRICS_PATH, metrics),
            Route(names.USAGE_PATH, usage_page),
            Route(names.VERSION_PATH, version),
        ]
    )


def _wants_json(request: Request) -> bool:
    return request.query_params.get("output") == "json" or _JSON in request.headers.get("accept", "")
