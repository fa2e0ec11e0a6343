"""Leadership against an API server: election, takeover, loss and the way back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import pytest

from halfcard import names
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.lease.candidate import NEW_LEASE_HOLDER, LeaseTimings
from kube.lease.leadership import Leadership
from tests.waiting import until

from ..object_server import Object, ObjectServer, serving_objects

LEASES = "/apis/coordination.k8s.io/v1/namespaces/halfcard-system/leases"
PATH = f"{LEASES}/extender"
QUICK = LeaseTimings(duration_s=0.4, decides_for_s=0.3, renew_every_s=0.02, retry_after_s=0.02)
MIX = "halfcard.dev/mix"


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    """A server with a Lease without holder."""
    with serving_objects() as server:
        write(server, holder="")
        yield server


def write(server: ObjectServer, holder: str, annotations: Mapping[str, str] = {}) -> None:
    known = server.objects.get(PATH, {"metadata": {"name": "extender", "labels": {"app": "halfcard"}}})
    metadata = known["metadata"]
    metadata = {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}
    server._store(PATH, {**known, "metadata": metadata, "spec": {"holderIdentity": holder}})


class Replica:
    def __init__(self, server: ObjectServer, name: str, notes: Callable[[], Mapping[str, str]]) -> None:
        self.calls = ApiCalls(Access("127.0.0.1", server.port))
        self.takeovers = 0
        self.finish = asyncio.Event()
        self.failures = 0
        self.leadership = Leadership(
            self.calls,
            namespace="halfcard-system",
            name="extender",
            instance=name,
            address=f"{name}:3456",
            notes=notes,
            rules=QUICK,
        )

    async def elected(self) -> None:
        self.takeovers += 1
        await self.finish.wait()
        if self.failures:
            self.failures -= 1
            raise OSError("the list broke off")


@contextlib.asynccontextmanager
async def replica(
    server: ObjectServer, name: str = "r1", notes: Callable[[], Mapping[str, str]] = dict, *, slow: bool = False
) -> AsyncIterator[Replica]:
    one = Replica(server, name, notes)
    if not slow:
        one.finish.set()
    running = asyncio.create_task(one.leadership.run(one.elected))
    try:
        yield one
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait((running,))
        one.calls.close()


def spec(server: ObjectServer) -> Object:
    found: Object = server.objects[PATH]["spec"]
    return found


def carried(server: ObjectServer) -> Object:
    found: Object = server.objects[PATH]["metadata"].get("annotations", {})
    return found


async def test_the_elected_replica_decides_after_the_takeover_and_publishes_its_address(server: ObjectServer) -> None:
    async with replica(server, slow=True) as one:
        await until(lambda: one.takeovers == 1)
        renewals = len(server.calls)
        await until(lambda: len(server.calls) > renewals + 3)
        assert not one.leadership.may_decide()
        one.finish.set()
        await until(one.leadership.may_decide)
        assert one.leadership.leader_address == carried(server)[names.LEADER_ADDRESS] == "r1:3456"
        assert spec(server)["holderIdentity"].startswith("r1_")
        assert spec(server)["leaseTransitions"] == 1
        assert server.objects[PATH]["metadata"]["labels"] == {"app": "halfcard"}
    assert one.takeovers == 1


async def test_a_replica_that_fails_by_a_bug_releases_the_lease_and_competes_again(server: ObjectServer) -> None:
    bugs = [ZeroDivisionError()]

    def notes() -> Mapping[str, str]:
        if bugs:
            raise bugs.pop()
        return {}

    one = Replica(server, "r1", notes)
    one.finish.set()
    with pytest.raises(ZeroDivisionError):
        await one.leadership.run(one.elected)
    assert not one.leadership.may_decide()
    assert "holderIdentity" not in spec(server)
    again = asyncio.create_task(one.leadership.run(one.elected))
    await until(one.leadership.may_decide)
    assert one.takeovers == 2
    again.cancel()
    await asyncio.wait((again,))
    one.calls.close()


async def test_the_other_replica_knows_the_address_and_takes_over_after_a_stop(
    server: ObjectServer,
) -> None:
    async with contextlib.AsyncExitStack() as first:
        one = await first.enter_async_context(replica(server))
        await until(one.leadership.may_decide)
        async with replica(server, "r2") as two:
            await until(lambda: two.leadership.leader_address == "r1:3456")
            assert two.takeovers == 0
            await first.aclose()
            assert not one.leadership.may_decide()
            await until(two.leadership.may_decide)
            assert two.leadership.leader_address == "r2:3456"


async def test_a_stop_releases_the_lease_and_keeps_its_notes(server: ObjectServer) -> None:
    async with replica(server, notes=lambda: {MIX: "learnt"}):
        await until(lambda: MIX in carried(server))
    assert not spec(server).get("holderIdentity")
    assert carried(server) == {MIX: "learnt"}
    async with replica(server, "r2", notes=dict) as two:
        await until(two.leadership.may_decide)
        assert two.leadership.notes[MIX] == "learnt"


async def test_notes_of_the_previous_leader_stay_until_the_takeover_is_done(server: ObjectServer) -> None:
    write(server, "", {MIX: "old"})
    async with replica(server, notes=lambda: {MIX: "new"}, slow=True) as one:
        await until(lambda: one.takeovers == 1)
        await until(lambda: names.LEADER_ADDRESS in carried(server))
        assert one.leadership.notes[MIX] == "old"
        one.finish.set()
        await until(lambda: carried(server)[MIX] == "new")


async def test_a_missing_lease_is_created_and_taken_only_after_its_duration(server: ObjectServer) -> None:
    del server.objects[PATH]
    async with replica(server) as one, replica(server, "r2") as two:
        await until(lambda: PATH in server.objects)
        assert spec(server)["holderIdentity"] == NEW_LEASE_HOLDER
        assert not one.takeovers + two.takeovers
        await until(lambda: one.leadership.may_decide() or two.leadership.may_decide())


async def test_a_replaced_leader_decides_nothing_and_takes_over_again_later(server: ObjectServer) -> None:
    async with replica(server) as one:
        await until(one.leadership.may_decide)
        write(server, "somebody")
        await until(lambda: not one.leadership.may_decide())
        assert one.takeovers == 1
        await until(one.leadership.may_decide)
        assert one.takeovers == 2


async def test_a_foreign_annotation_does_not_cause_a_takeover(server: ObjectServer) -> None:
    async with replica(server) as one:
        await until(one.leadership.may_decide)
        write(server, spec(server)["holderIdentity"], {"seen": "yes"})
        renewals = len(server.calls)
        await until(lambda: len(server.calls) > renewals + 5 and one.leadership.may_decide())
        assert one.takeovers == 1
        assert carried(server)["seen"] == "yes"


async def test_lost_answers_do_not_cause_a_takeover(server: ObjectServer) -> None:
    async with replica(server) as one:
        await until(one.leadership.may_decide)
        server.faults = ["unanswered", "refused", "unheard", "unheard"]
        await until(lambda: not server.faults)
        renewals = len(server.calls)
        await until(lambda: len(server.calls) > renewals + 5 and one.leadership.may_decide())
        assert one.takeovers == 1


async def test_a_failed_takeover_releases_the_lease_and_is_tried_again(server: ObjectServer) -> None:
    async with replica(server, slow=True) as one:
        one.failures = 1
        one.finish.set()
        await until(lambda: "the list broke off" in (one.leadership.trouble or ""))
        await until(one.leadership.may_decide)
        assert one.takeovers == 2
        assert spec(server)["leaseTransitions"] == 2


async def test_a_refusal_is_reported_with_the_servers_message(server: ObjectServer) -> None:
    server.faults = ["refused"] * 1000
    async with replica(server) as one:
        await until(lambda: bool(one.leadership.trouble))
        assert one.leadership.trouble == (
            "leadership is uncertain: the API server answered 500 to reading the Lease: no leader"
        )
        server.faults = []
        await until(lambda: one.leadership.trouble is None)
