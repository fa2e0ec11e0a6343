"""The extender's HTTP application: a FastAPI app for people, and before it kube-scheduler's calls as raw ASGI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp

import halfcard
from halfcard import names
from halfcard.placing.node_totals import Offer
from serving.direct_routes import DirectRoutes
from serving.log import Log

from .explain.inspection import gpushare_json, inspect_json
from .inspection_stream import OneByOne, gpushare_parts, inspection_parts
from .metrics import ExtenderMetrics
from .scheduler_api import wire
from .scheduler_api.endpoint import Verb
from .scheduler_api.handlers import VerbHandlers


def extender_app(
    scheduling: VerbHandlers, *, table: Mapping[str, Offer], aliyun_unit_mib: int, metrics: ExtenderMetrics, log: Log
) -> ASGIApp:
    check = scheduling.check_caller
    verbs = {
        "filter": Verb("filter", scheduling.filter, wire.filter_error, metrics, log),
        "prioritize": Verb("prioritize", scheduling.prioritize, _no_scores, metrics, log),
        "preempt": Verb("preempt", scheduling.preempt, _no_victims, metrics, log, wire.MAX_PREEMPTION_BYTES, check),
        "bind": Verb("bind", scheduling.bind, wire.bind_answer, metrics, log, wire.MAX_BINDING_BYTES, check),
    }
    routes = {path: verbs[verb] for path, verb in PATHS.items()}
    return DirectRoutes(_for_people(scheduling, table, aliyun_unit_mib), routes)


PATHS: Mapping[str, str] = {
    names.FILTER_PATH: "filter",
    names.GPU_ADMISSION_FILTER_PATH: "filter",
    names.GPUSHARE_FILTER_PATH: "filter",
    names.PRIORITIZE_PATH: "prioritize",
    names.BIND_PATH: "bind",
    names.GPUSHARE_BIND_PATH: "bind",
    names.PREEMPT_PATH: "preempt",
}


def _no_scores(_why: str) -> bytes:
    """Encodes no scores: prioritize has no field for an error, and the scheduler then uses its other scores."""
    return wire.prioritize_answer([], b"")


def _no_victims(_why: str) -> bytes:
    """Encodes that evictions help on no node."""
    return wire.preempt_answer({})


def _for_people(scheduling: VerbHandlers, table: Mapping[str, Offer], aliyun_unit_mib: int) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    state = scheduling.state
    one_by_one = OneByOne()

    def streamed(parts: Iterator[bytes]) -> Response:
        return StreamingResponse(one_by_one.stream(parts), media_type="application/json")

    @app.get(names.INSPECT_PATH)
    async def inspect() -> Response:
        return streamed(inspection_parts(state, table))

    @app.get(names.INSPECT_PATH + "/{name}")
    async def inspect_one(name: str) -> Response:
        node = state.nodes().get(name)
        return _unknown(name) if node is None else JSONResponse(inspect_json(state, node, table))

    @app.get(names.GPUSHARE_INSPECT_PATH)
    async def inspect_gpushare() -> Response:
        return streamed(gpushare_parts(state, aliyun_unit_mib))

    @app.get(names.GPUSHARE_INSPECT_PATH + "/{name}")
    async def inspect_gpushare_one(name: str) -> Response:
        node = state.nodes().get(name)
        return _unknown(name) if node is None else JSONResponse(gpushare_json(state, [node], aliyun_unit_mib))

    @app.get(names.VERSION_PATH)
    async def version() -> Response:
        return PlainTextResponse(f"{halfcard.__version__}\n")

    return app


def _unknown(name: str) -> Response:
    return JSONResponse(
        {"nodes": [], "error": f"node {name[:253]} is unknown, or its capacity is implausible"}, status_code=404
    )
