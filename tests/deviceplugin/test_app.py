"""The agent's HTTP application over a real listener."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import halfcard
from deviceplugin.app import agent_app
from deviceplugin.gpus.interface import Process
from deviceplugin.metrics import AgentMetrics
from deviceplugin.usage.usage_json import read_usage
from deviceplugin.usage.usage_metrics import write
from deviceplugin.usage.usage_report import NodeUsageReport
from deviceplugin.usage.usage_text import usage_text
from serving.lifecycle import Lifecycle
from tests.serving.conversation import Answer, server

from .usages import SEED, load, owner, usage

SEEN = usage([SEED], {"GPU-0": load(Process(7, 300, 5))}, {7: owner("vcuda")})


async def get(path: str, seen: NodeUsageReport = SEEN, accept: str = "*/*", trouble: str | None = None) -> Answer:
    registry = CollectorRegistry()
    AgentMetrics(registry, is_made_up=True).count_registration("tuya.com/sgpu")

    async def look() -> NodeUsageReport:
        return seen

    app = agent_app(look, checks={"kubelet": lambda: trouble}, lifecycle=Lifecycle(), registry=registry)
    async with server(app) as running:
        client = await running.connect()
        return await client.ask(f"GET {path} HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\n\r\n".encode())


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
    assert (await get("/readyz")).status == 200
    refused = await get("/readyz", trouble="kubelet has not answered yet")
    assert (refused.status, json.loads(refused.body)["checks"]["kubelet"]) == (503, "kubelet has not answered yet")
    assert (await get("/healthz", trouble="kubelet has not answered yet")).status == 200


async def test_the_version_has_gpu_managers_format() -> None:
    assert json.loads((await get("/version")).body) == {"version": halfcard.__version__}


async def test_other_paths_are_not_found() -> None:
    assert [(await get(path)).status for path in ("/", "/graph", "/debug/pprof/", "/docs")] == [404] * 4


async def test_simulated_cards_are_marked_in_every_format() -> None:
    made_up = replace(SEEN, is_made_up=True)
    assert b"made up" in (await get("/usage", made_up)).body
    assert json.loads((await get("/usage?output=json", made_up)).body)["is_made_up"] is True
    assert b"\nhalfcard_agent_made_up 1.0\n" in (await get("/metrics", made_up)).body
