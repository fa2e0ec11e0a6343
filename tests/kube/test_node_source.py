from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import kube.api.reflector
from kube.api.access import Access
from kube.node_source import NODES, NodeSource
from tests.builders import resource_slice
from tests.waiting import until

from .node_server import SLICES, NodeServer, driver_servers, node, serving


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube.api.reflector, "_FIRST_RETRY_S", 0.01)


@contextlib.asynccontextmanager
async def watching(server: NodeServer) -> AsyncIterator[NodeSource]:
    source = NodeSource(Access("127.0.0.1", server.port, token=lambda: "secret"))
    watch = asyncio.create_task(source.watch())
    try:
        yield source
        assert not watch.done()
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


@asynccontextmanager
async def source_of(*names: str) -> AsyncIterator[tuple[NodeServer, NodeSource]]:
    """A server that begins with these nodes, and a source that watches it."""
    with serving(NODES) as server:
        for name in names:
            server.put(node(name, 4))
        async with watching(server) as source:
            yield server, source


def names(source: NodeSource) -> list[str]:
    return sorted(known.name for known in source.view().nodes)


async def test_all_pages_are_listed_before_it_is_ready() -> None:
    async with source_of(*"abcdefgh") as (server, source):
        await until(source.ready)
        assert names(source) == list("abcdefgh")
        assert server.lists() == 1


async def test_changes_are_followed_without_listing_again() -> None:
    async with source_of("a") as (server, source):
        await until(lambda: names(source) == ["a"])
        server.put(node("b", 8))
        await until(lambda: source.view().largest_card_mib == 8 * 256)
        server.put(node("b", 16))
        await until(lambda: source.view().largest_card_mib == 16 * 256)
        server.delete("b")
        await until(lambda: names(source) == ["a"])
        assert source.view().largest_card_mib == 4 * 256
        assert server.lists() == 1


async def test_a_heartbeat_makes_no_new_view() -> None:
    async with source_of("a") as (server, source):
        await until(source.ready)
        view = source.view()
        server.put(node("a", 4, heartbeat=1))
        server.bookmark()
        await until(lambda: source._follower.version == "3")
        assert source.view() is view


async def test_an_interrupted_watch_resumes_at_its_version() -> None:
    async with source_of("a") as (server, source):
        await until(source.ready)
        for name in "bcd":
            server.cut()
            server.put(node(name, 4))
            await until(lambda name=name: name in names(source))  # type: ignore[misc]
        assert server.lists() == 1


async def test_a_discarded_version_is_listed_again() -> None:
    async with source_of("a", "b") as (server, source):
        await until(source.ready)
        server.refusal = (503, "starting")
        server.cut()
        await until(lambda: bool(source.problems()))
        server.delete("a")
        server.put(node("c", 4))
        server.forgotten, server.refusal = server.version, None
        await until(lambda: names(source) == ["b", "c"] and not source.problems())
        assert server.lists() == 2


async def test_a_refusal_is_reported_and_the_known_state_stays() -> None:
    async with source_of("a") as (server, source):
        await until(source.ready)
        server.refusal = (403, 'nodes is forbidden: User "x" cannot watch\x1b[31m')
        server.cut()
        await until(lambda: bool(source.problems()))
        (problem,) = source.problems()
        assert "answered 403 to GET /api/v1/nodes: nodes is forbidden" in problem
        assert problem.isprintable()
        assert names(source) == ["a"]
        assert source.ready()
        server.refusal = None
        await until(lambda: not source.problems())


async def test_it_is_not_ready_before_the_first_list_and_reports_why() -> None:
    async def story(server: NodeServer, source: NodeSource) -> None:
        server.refusal = (500, "no leader")
        await until(lambda: any("no leader" in problem for problem in source.problems()))
        server.refusal = None
        await until(source.ready)

    with serving(NODES) as server:
        server.refusal = (500, "no leader")
        async with watching(server) as source:
            assert not source.ready()
            await story(server, source)


async def test_an_invalid_line_is_a_problem_and_the_watch_continues() -> None:
    async with source_of("a") as (server, source):
        await until(source.ready)
        server.garble()
        await until(lambda: bool(source.problems()))
        server.forgotten = server.version
        server.put(node("b", 4))
        await until(lambda: names(source) == ["a", "b"])


async def test_an_implausible_node_is_left_out_and_reported() -> None:
    async with source_of("a") as (server, source):
        await until(source.ready)
        server.put({"metadata": {"name": "odd"}, "status": {"capacity": {"tencent.com/vcuda-core": "50"}}})
        await until(lambda: bool(source.problems()))
        assert source.problems()[0].startswith("node odd is left out")
        assert names(source) == ["a"]


async def test_every_call_sends_the_token() -> None:
    async with source_of() as (server, source):
        await until(source.ready)
        await until(lambda: len(server.headers) == 2)
        assert [sent["Authorization"] for sent in server.headers] == ["Bearer secret"] * 2


async def test_cancelling_ends_the_thread_at_once() -> None:
    def alive() -> bool:
        return any(thread.name == "nodes" for thread in threading.enumerate())

    with serving(NODES) as server:
        async with watching(server) as source:
            await until(source.ready)
            assert alive()
        await until(lambda: not alive())


async def test_an_unreachable_server_is_a_problem_until_it_answers() -> None:
    with serving(NODES) as gone:
        port = gone.port
    source = NodeSource(Access("127.0.0.1", port))
    watch = asyncio.create_task(source.watch())
    await until(lambda: bool(source.problems()))
    assert "refused" in source.problems()[0]
    assert not source.ready()
    watch.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watch


async def test_nodes_whose_cards_a_driver_has_are_named() -> None:
    drivers = driver_servers()
    with serving(NODES, drivers) as server:
        server.put(node("a", 4))
        async with watching(server) as source:
            await until(lambda: names(source) == ["a"])
            assert source.view().driver_nodes == frozenset()
            drivers[SLICES].put(resource_slice("dra1"))
            await until(lambda: source.view().driver_nodes == {"dra1"})
            view = source.view()
            drivers[SLICES].put(resource_slice("dra1", name="another"))
            drivers[SLICES].delete("dra1-gpu.nvidia.com")
            drivers[SLICES].delete("another")
            await until(lambda: source.view().driver_nodes == frozenset())
            assert view.driver_nodes == {"dra1"} and names(source) == ["a"]
