"""The stored turns of workloads: what one leader writes, the next one has."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

import quota.turns_store
from halfcard import names
from halfcard.quota.turns import Member, Place, Turn, Workload
from kube.api.access import Access
from kube.api.calls import ApiCalls, NoAnswerError
from kube.ledger.ledger_store import ConfigMap, ConfigMapMetadata
from quota.turns_store import TurnsStore, decoded, encoded
from quota.workload_turns import HeldTurn, KeptTurns, WorkloadTurns
from tests.kube.ledger_server import NAMESPACE, LedgerServer, serving_ledgers

WEB: Final = Workload("team", "Deployment", "web")


def member(created: str, turn: str = "") -> Member:
    return Member(f"v{created}", created, turn or created, {"cores": 100})


@pytest.fixture
def server() -> Iterator[LedgerServer]:
    with serving_ledgers() as server:
        yield server


@contextlib.asynccontextmanager
async def replica(server: LedgerServer) -> AsyncIterator[tuple[WorkloadTurns, TurnsStore]]:
    turns, calls = WorkloadTurns(lambda: 0.0), ApiCalls(Access("127.0.0.1", server.port))
    try:
        yield turns, TurnsStore(calls, turns, lambda namespace: namespace == "team", lambda: True, NAMESPACE)
    finally:
        calls.close()


def stored(server: LedgerServer) -> KeptTurns:
    return decoded(server.seen(names.QUOTA_TURNS).content)


async def test_the_next_leader_has_the_turns_of_the_last(server: LedgerServer) -> None:
    async with replica(server) as (turns, store):
        await store.restore()
        turns.put("a", WEB, member("10"))
        await store.report()
        turns.drop("a", is_deleted=True)
        await store.report()
    async with replica(server) as (turns, store):
        await store.restore()
        assert turns.of(WEB, {"new": member("20")})["new"] == Turn("10", Place.INHERITED)
        turns.put("new", WEB, member("20"))
        await store.report()
        assert store.trouble == ""
    async with replica(server) as (turns, store):
        turns.put("new", WEB, member("20"))
        await store.restore()
        assert turns.kept(lambda _: True).held == {"new": HeldTurn(WEB, member("20", "10"))}


async def test_nothing_is_written_without_a_change_or_where_no_pod_waits(server: LedgerServer) -> None:
    async with replica(server) as (turns, store):
        turns.put("a", Workload("other", "Deployment", "web"), member("10"))
        await store.report()
        assert server.writes() == 0
        turns.put("b", WEB, member("10"))
        await store.report()
        await store.report()
        assert server.writes() == 1


async def test_what_another_writer_left_is_replaced(server: LedgerServer) -> None:
    async with replica(server) as (turns, store):
        turns.put("a", WEB, member("10"))
        server.put_map(names.QUOTA_TURNS, encoded(KeptTurns({}, [])))
        await store.report()
        await store.report()
    assert stored(server).held.keys() == {"a"}


async def test_a_write_without_an_answer_is_tried_again(server: LedgerServer) -> None:
    async with replica(server) as (turns, store):
        turns.put("a", WEB, member("10"))
        server.faults = ["unanswered"]
        with pytest.raises(NoAnswerError):
            await store.report()
        await store.report()
        await store.report()
        turns.drop("a", is_deleted=True)
        await store.report()
    assert [each.member.turn for each in stored(server).left] == ["10"]


@pytest.mark.parametrize("content", [b"", b"garbage"])
async def test_an_unreadable_object_is_reported_and_replaced(server: LedgerServer, content: bytes) -> None:
    server.put_map(names.QUOTA_TURNS, ConfigMap(ConfigMapMetadata(names.QUOTA_TURNS), binary_data={"turns": content}))
    async with replica(server) as (turns, store):
        turns.put("a", WEB, member("10"))
        await store.restore()
        assert names.QUOTA_TURNS in store.trouble
        await store.report()
        assert store.trouble == ""
    assert stored(server).held.keys() == {"a"}


def test_of_too_many_pods_only_those_that_took_a_turn_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {"came": HeldTurn(WEB, member("20")), "took": HeldTurn(WEB, member("20", "10"))}
    assert decoded(encoded(KeptTurns(held, []))).held == held
    monkeypatch.setattr(quota.turns_store, "_MOST_BYTES", 50)
    assert decoded(encoded(KeptTurns(held, []))).held.keys() == {"took"}
