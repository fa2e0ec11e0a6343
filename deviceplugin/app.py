"""The agent's HTTP applications: health for probes; usage for people and Prometheus, on gpu-manager's paths too.

Usage names the pods of all namespaces, so it needs a token that may read it.
"""

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
from kube.token_access import Denied, TokenAccess
from serving.health_endpoints import Check, health_routes
from serving.lifecycle import Lifecycle

from .usage import usage_metrics
from .usage.usage_json import usage_json
from .usage.usage_report import NodeUsageReport
from .usage.usage_text import usage_text

Page = Callable[[Request], Awaitable[Response]]

_JSON: Final = "application/json"
_METRICS: Final = (names.METRICS_PATH, names.GPU_MANAGER_METRICS_PATH)
_FIXES: Final = {
    401: f"send the header Authorization: Bearer $(kubectl -n {names.NAMESPACE} create token {names.TOP})",
    403: f"ask an administrator for a ClusterRoleBinding to {names.USAGE_ROLE}",
    503: "try again",
}


class UsagePages:
    """The pages with the usage of a node: they name the pods of all namespaces."""

    def __init__(self, usage: Callable[[], Awaitable[NodeUsageReport]], registry: CollectorRegistry) -> None:
        self._usage = usage
        self._registry = registry

    async def metrics(self, _: Request) -> Response:
        text = usage_metrics.write(await self._usage()).encode() + generate_latest(self._registry)
        return Response(text, headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    async def usage(self, request: Request) -> Response:
        found = await self._usage()
        if _wants_json(request):
            return Response(usage_json(found), media_type=_JSON)
        return PlainTextResponse(usage_text(found))


def plain_app(
    pages: UsagePages, *, checks: Mapping[str, Check], lifecycle: Lifecycle, plain_metrics: bool
) -> Starlette:
    """The application without TLS, for probes; `plain_metrics` adds the metrics, for any caller, as in gpu-manager."""

    async def version(_: Request) -> Response:
        return JSONResponse({"version": halfcard.__version__})

    metrics = [Route(path, pages.metrics) for path in _METRICS] if plain_metrics else []
    return Starlette(routes=[*health_routes(checks, lifecycle), Route(names.VERSION_PATH, version), *metrics])


def usage_app(pages: UsagePages, access: TokenAccess) -> Starlette:
    """The application with TLS, for callers with a token that may read it."""

    def guarded(path: str, page: Page, right: str) -> Route:
        async def answer(request: Request) -> Response:
            denied = await access.denied(_token(request), right)
            return await page(request) if denied is None else _refusal(path, denied)

        return Route(path, answer)

    metrics = [guarded(path, pages.metrics, names.METRICS_PATH) for path in _METRICS]
    return Starlette(routes=[*metrics, guarded(names.USAGE_PATH, pages.usage, names.USAGE_PATH)])


def _token(request: Request) -> str:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else request.headers.get(names.TOKEN_HEADER, "")


def _refusal(path: str, denied: Denied) -> Response:
    headers = {"www-authenticate": "Bearer"} if denied.status == 401 else {}
    text = f"{path} names the pods of all namespaces, and needs a token: {denied.why}; {_FIXES[denied.status]}\n"
    return PlainTextResponse(text, denied.status, headers)


def _wants_json(request: Request) -> bool:
    return request.query_params.get("output") == "json" or _JSON in request.headers.get("accept", "")
