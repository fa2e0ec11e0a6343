"""A collection that is followed for an event loop: typed, in order, in batches, spoilt by nothing odd."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

import kube.api.informer
import kube.api.reflector
from kube.api.access import Access
from kube.api.informer import Informer
from kube.api.list_watch import Collection, Undecodable, WatchEvent
from kube.node_source import NODES
from tests.waiting import until

from ..node_server import NodeServer, node, serving


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube.api.reflector, "_FIRST_RETRY_S", 0.01)


class Metadata(msgspec.Struct, frozen=True):
    name: str


class Status(msgspec.Struct, frozen=True):
    heartbeat: int


class Beating(msgspec.Struct, frozen=True):
    """A node of which we insist on a heartbeat."""

    metadata: Metadata
    status: Status


class Seen:
    """What was handed over, as one story."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.batches: list[int] = []
        self.threads: set[threading.Thread] = set()
        self.odd: list[Undecodable] = []
        self.fails_when = ""

    def listed(self, nodes: list[Beating | Undecodable]) -> None:
        self._fail("listed")
        self.threads.add(threading.current_thread())
        self.story.append("listed " + " ".join(self._name(item) for item in nodes))

    def _fail(self, when: str) -> None:
        if self.fails_when == when:
            raise ZeroDivisionError

    def changed(self, changes: list[WatchEvent[Beating]]) -> None:
        self._fail("changed")
        self.threads.add(threading.current_thread())
        self.batches.append(len(changes))
        self.story += [f"{change.type} {self._name(change.object)}" for change in changes]

    def _name(self, item: Beating | Undecodable) -> str:
        if isinstance(item, Undecodable):
            self.odd.append(item)
            return f"odd {item.name}"
        return f"{item.metadata.name}{item.status.heartbeat}"


@contextlib.asynccontextmanager
async def following(server: NodeServer, seen: Seen) -> AsyncIterator[Informer[Beating]]:
    nodes = Collection(Access("127.0.0.1", server.port), NODES, Beating, page=2)
    one = Informer(nodes, listed=seen.listed, changed=seen.changed, name="nodes")
    running = asyncio.create_task(one.run())
    try:
        yield one
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait((running,))


@asynccontextmanager
async def informer_of(*names: str) -> AsyncIterator[tuple[NodeServer, Seen, Informer[Beating]]]:
    """A server that begins with these nodes, and an informer that has listed them."""
    with serving() as server:
        for name in names:
            server.put(node(name, 4))
        seen = Seen()
        async with following(server, seen) as informer:
            await until(lambda: informer.ready)
            yield server, seen, informer


async def test_one_complete_list_comes_first_then_the_changes_in_order_all_on_the_loop() -> None:
    async with informer_of(*"abcd") as (server, seen, _):
        assert seen.story == ["listed a0 b0 c0 d0"]
        assert server.calls[0]["limit"] == "2"
        server.put(node("b", 4, heartbeat=1))
        server.bookmark()
        server.delete("a")
        server.put(node("e", 4))
        await until(lambda: len(seen.story) == 4)
        assert seen.story[1:] == ["MODIFIED b1", "DELETED a0", "ADDED e0"]
        assert seen.threads == {threading.current_thread()}


async def test_changes_within_milliseconds_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube.api.informer, "_BATCH_DELAY_S", 0.05)
    monkeypatch.setattr(kube.api.informer, "_BATCH", 200)
    async with informer_of("a") as (server, seen, _):
        for beat in range(1, 501):
            server.put(node("a", 4, heartbeat=beat))
        await until(lambda: len(seen.story) == 501)
        assert seen.story[1:] == [f"MODIFIED a{beat}" for beat in range(1, 501)]
        assert len(seen.batches) < 50
        assert max(seen.batches) <= 200


async def test_an_undecodable_object_affects_only_itself() -> None:
    async with informer_of("a") as (server, seen, _):
        server.put({"metadata": {"name": "odd", "namespace": "n", "uid": "u"}, "status": {}})
        server.put({"metadata": {"name": 7}})
        server.put(node("b", 4))
        server.delete("odd")
        await until(lambda: len(seen.story) == 5)
        assert seen.story == ["listed a0", "ADDED odd odd", "ADDED odd ", "ADDED b0", "DELETED odd odd"]
        assert str(seen.odd[0]) == "n/odd is left out: Object missing required field `heartbeat` - at `$.status`"
        assert seen.odd[0].uid == "u"


async def test_a_lost_connection_is_reported_and_missed_changes_are_listed() -> None:
    async with informer_of("a", "b") as (server, seen, one):
        server.refusal = (503, "starting")
        server.cut()
        await until(lambda: one.trouble is not None)
        assert one.trouble == "nodes may be out of date: the API server answered 503 to GET /api/v1/nodes: starting"
        assert one.ready
        server.delete("a")
        server.put({"metadata": {"name": "odd"}})
        server.forgotten, server.refusal = server.version, None
        await until(lambda: seen.story == ["listed a0 b0", "listed b0 odd odd"])
        await until(lambda: one.trouble is None)


@pytest.mark.parametrize("where", ["listed", "changed"])
async def test_run_raises_a_bug_of_a_callback(where: str) -> None:
    with serving() as server:
        seen = Seen()
        seen.fails_when = where
        nodes = Collection(Access("127.0.0.1", server.port), NODES, Beating)
        one = Informer(nodes, listed=seen.listed, changed=seen.changed, name="nodes")
        running = asyncio.create_task(one.run())
        server.put(node("a", 4))
        await until(lambda: one.ready or running.done())
        server.put(node("b", 4))
        with pytest.raises(ZeroDivisionError):
            await running


@pytest.mark.parametrize("where", ["listed", "changed"])
async def test_a_restart_after_a_bug_misses_nothing(where: str) -> None:
    with serving() as server:
        server.put(node("a", 4))
        seen = Seen()
        seen.fails_when = where
        nodes = Collection(Access("127.0.0.1", server.port), NODES, Beating)
        one = Informer(nodes, listed=seen.listed, changed=seen.changed, name="nodes")
        refreshing = asyncio.create_task(one.refresh()) if where == "listed" else None
        await asyncio.sleep(0)  # the first list is the one that is wished for
        failing = asyncio.create_task(one.run())
        await until(lambda: one.ready or failing.done())
        server.put(node("b", 4))
        with pytest.raises(ZeroDivisionError):
            await failing
        server.delete("a")
        seen.story, seen.fails_when = [], ""
        running = asyncio.create_task(one.run())
        await until(lambda: seen.story[-1:] == ["listed b0"])
        server.put(node("c", 4))
        await until(lambda: seen.story[-1:] == ["ADDED c0"])
        if refreshing is not None:
            async with asyncio.timeout(5):
                await refreshing
        running.cancel()
        await asyncio.wait((running,))


async def test_cancelling_ends_the_thread_at_once() -> None:
    def alive() -> bool:
        return any(thread.name == "nodes" for thread in threading.enumerate())

    with serving() as server:
        async with following(server, Seen()) as one:
            await until(lambda: one.ready)
            assert alive()
        await until(lambda: not alive())


def test_a_cancelled_informer_sends_no_further_call() -> None:
    with serving() as server:
        nodes = Collection(Access("127.0.0.1", server.port), NODES, Beating)
        nodes.abandon()
        with pytest.raises(ConnectionAbortedError), nodes.watch("0"):
            pass
        assert not server.calls


async def test_a_refresh_is_a_list_that_began_after_the_request() -> None:
    async with informer_of("a") as (server, seen, one):
        assert seen.story == ["listed a0"]
        for beat in range(1, 4):
            server.put(node("a", 4, heartbeat=beat))
            async with asyncio.timeout(5):
                await one.refresh()
            assert seen.story[-1] == f"listed a{beat}"
        assert one.trouble is None


async def test_a_refresh_waits_until_the_server_answers() -> None:
    async with informer_of("a") as (server, seen, one):
        server.refusal = (503, "starting")
        refreshing = asyncio.create_task(one.refresh())
        await until(lambda: one.trouble is not None)
        assert not refreshing.done()
        server.refusal = None
        async with asyncio.timeout(5):
            await refreshing
        assert seen.story == ["listed a0", "listed a0"]


async def test_waiting_during_the_first_list_ends_with_that_list() -> None:
    with serving() as server:
        waiting: list[asyncio.Task[None]] = []
        nodes = Collection(Access("127.0.0.1", server.port), NODES, Beating)
        one = Informer(
            nodes,
            listed=lambda _: waiting.append(asyncio.ensure_future(one.wait_until_ready())),
            changed=lambda _: None,
            name="nodes",
        )
        running = asyncio.create_task(one.run())
        await until(lambda: bool(waiting))
        async with asyncio.timeout(5):
            await waiting[0]
        running.cancel()
        await asyncio.wait((running,))


async def test_a_collection_that_may_be_absent_is_empty_until_it_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube.api.reflector, "_ABSENT_S", 0.01)
    with serving() as server:
        server.refusal = (404, "the server could not find the requested resource")
        seen = Seen()
        nodes = Collection(Access("127.0.0.1", server.port), NODES, Beating)
        one = Informer(nodes, listed=seen.listed, changed=seen.changed, name="nodes", may_be_absent=True)
        running = asyncio.create_task(one.run())
        await until(lambda: one.ready)
        assert (one.trouble, set(seen.story)) == (None, {"listed "})
        server.put(node("a", 4))
        server.refusal = None
        await until(lambda: seen.story[-1] == "listed a0")
        running.cancel()
        await asyncio.wait((running,))
