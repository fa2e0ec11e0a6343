"""The agent's HTTP applications over a real listener."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

import halfcard
from deviceplugin.app import UsagePages, plain_app, usage_app
from deviceplugin.gpus.interface import Process
from deviceplugin.metrics import AgentMetrics
from deviceplugin.usage.usage_json import read_usage
from deviceplugin.usage.usage_metrics import write
from deviceplugin.usage.usage_report import NodeUsageReport
from deviceplugin.usage.usage_text import usage_text
from halfcard import names
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.token_access import TokenAccess
from serving.health_endpoints import Check
from serving.lifecycle import Lifecycle
from tests.kube.reviewing_server import KNOWN, ReviewingServer, reviewing
from tests.serving.conversation import Answer, server

from .usages import SEED, load, owner, usage

SEEN = usage([SEED], {"GPU-0": load(Process(7, 300, 5))}, {7: owner("vcuda")})


@asynccontextmanager
async def pages(seen: NodeUsageReport = SEEN) -> AsyncIterator[tuple[UsagePages, TokenAccess, ReviewingServer]]:
    """The pages of an agent, and an API server that allows the owner of a token to read them."""
    registry = CollectorRegistry()
    AgentMetrics(registry, is_made_up=True).count_registration("tuya.com/sgpu")

    async def look() -> NodeUsageReport:
        return seen

    with reviewing() as api_server:
        api_server.may_get = {"/usage", "/metrics"}
        calls = ApiCalls(Access("127.0.0.1", api_server.port))
        yield UsagePages(look, registry), TokenAccess(calls, time.monotonic), api_server
        calls.close()


async def ask(app: Starlette, path: str, *headers: str) -> Answer:
    async with server(app) as running:
        client = await running.connect()
        lines = (f"GET {path} HTTP/1.1", "host: x", *headers)
        return await client.ask(("\r\n".join(lines) + "\r\n\r\n").encode())


async def get(path: str, seen: NodeUsageReport = SEEN, accept: str = "*/*") -> Answer:
    """Requests a path with a token that may read it."""
    async with pages(seen) as (shown, access, _):
        return await ask(usage_app(shown, access), path, f"accept: {accept}", f"authorization: Bearer {KNOWN}")


async def plain(path: str, *headers: str, trouble: str | None = None, plain_metrics: bool = False) -> Answer:
    async with pages() as (shown, _, _):
        checks: dict[str, Check] = {"kubelet": lambda: trouble}
        app = plain_app(shown, checks=checks, lifecycle=Lifecycle(), plain_metrics=plain_metrics)
        return await ask(app, path, *headers)


PAGES: Final = ("/usage", "/usage?output=json", "/metric", "/metrics")


# --- who may read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
async def test_usage_is_for_tokens_that_may_read_it(path: str) -> None:
    async with pages() as (shown, access, _):
        app = usage_app(shown, access)
        for header in (f"authorization: bearer  {KNOWN}", f"{names.TOKEN_HEADER}: {KNOWN}"):
            assert (await ask(app, path, header)).status == 200


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "header", ["accept: */*", "authorization: Basic known", "authorization: known", "authorization: Bearer guessed"]
)
async def test_others_are_told_how_to_get_a_token(path: str, header: str) -> None:
    async with pages() as (shown, access, _):
        answer = await ask(usage_app(shown, access), path, header)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "vcuda" not in answer.body.decode()
    assert f"kubectl -n {names.NAMESPACE} create token {names.TOP}" in answer.body.decode()


async def test_who_may_not_read_is_told_which_role_allows_it() -> None:
    async with pages() as (shown, access, api_server):
        api_server.may_get.clear()
        answer = await ask(usage_app(shown, access), "/metric", f"authorization: Bearer {KNOWN}")
    assert answer.body.decode() == (
        "/metric names the pods of all namespaces, and needs a token: system:serviceaccount:monitoring:prometheus"
        " may not get /metrics; ask an administrator for a ClusterRoleBinding to halfcard-usage\n"
    )


@pytest.mark.parametrize("path", PAGES)
async def test_without_tls_no_usage_is_served_except_metrics_on_request(path: str) -> None:
    assert (await plain(path, f"authorization: Bearer {KNOWN}")).status == 404
    shown = await plain(path, plain_metrics=True)
    assert shown.status == (404 if path.startswith("/usage") else 200)


# --- what they read ---------------------------------------------------------------------------------------------------


async def test_both_metrics_paths_return_usage_and_the_agents_own_metrics() -> None:
    first, second = await get("/metric"), await get("/metrics")
    assert first.body == second.body
    assert first.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = first.body.decode()
    assert text.startswith(write(SEEN))
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {"halfcard_agent_registrations", "halfcard_agent_made_up", "container_gpu_utilization"} <= set(families)


async def test_a_browser_gets_tables() -> None:
    answer = await get("/usage", accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert (answer.status, answer.body.decode()) == (200, usage_text(SEEN))


async def test_a_program_gets_all_usage_as_json_for_any_accept_header() -> None:
    by_header, by_query = await get("/usage", accept="application/json"), await get("/usage?output=json")
    assert by_header.body == by_query.body
    assert by_header.headers["content-type"] == "application/json"
    assert read_usage(by_header.body) == SEEN


async def test_the_json_is_also_what_gpu_managers_clients_read() -> None:
    found: dict[str, Any] = json.loads((await get("/usage?output=json")).body)
    device = {"id": "GPU-0", "card_idx": "0", "gpu": 5, "mem": 300, "pids": [7], "device_mem": 15109}
    assert found["usage"] == {
        "uid-vcuda": {
            "stat": {"tensorflow": {"dev": [device]}},
            "project": "default",
            "spec": {"tensorflow": {"gpu": 0.1, "mem": 1024}},
        }
    }


async def test_zeros_are_omitted_as_gpu_manager_does() -> None:
    found = json.loads((await get("/usage?output=json", usage([SEED]))).body)
    device = {"id": "GPU-0", "card_idx": "0", "device_mem": 15109}
    assert found["usage"]["uid-vcuda"]["stat"]["tensorflow"]["dev"] == [device]


async def test_an_agent_is_ready_when_its_checks_pass_and_always_alive() -> None:
    assert (await plain("/readyz")).status == 200
    refused = await plain("/readyz", trouble="kubelet has not answered yet")
    assert (refused.status, json.loads(refused.body)["checks"]["kubelet"]) == (503, "kubelet has not answered yet")
    assert (await plain("/healthz", trouble="kubelet has not answered yet")).status == 200


async def test_the_version_has_gpu_managers_format() -> None:
    assert json.loads((await plain("/version")).body) == {"version": halfcard.__version__}


async def test_other_paths_are_not_found() -> None:
    for ask_for in (get, plain):
        assert [(await ask_for(path)).status for path in ("/", "/graph", "/debug/pprof/", "/docs")] == [404] * 4


async def test_simulated_cards_are_marked_in_every_format() -> None:
    made_up = replace(SEEN, is_made_up=True)
    assert b"made up" in (await get("/usage", made_up)).body
    assert json.loads((await get("/usage?output=json", made_up)).body)["is_made_up"] is True
    assert b"\nhalfcard_agent_made_up 1.0\n" in (await get("/metrics", made_up)).body
