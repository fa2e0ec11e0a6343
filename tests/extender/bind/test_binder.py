"""The one verb that writes: what is recorded, what is given back, and what it makes of every answer and of none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.bind.binder import Binder, BindRules, NotBound, NotLeading
from extender.bind.pod_requests import BindCall
from extender.bind.quota_reservations import QuotaReservations
from extender.packing.fleet import fleet_of
from extender.packing.placement import POLICIES
from extender.packing.workload_mix import WorkloadMix
from extender.state import State
from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.placing.records import RecordWriter
from kube.api.access import Access
from kube.api.calls import ApiCalls
from tests.builders import PodBuilder, pod
from tests.extender.pod_server import Fault, PodServer, serving_pods
from tests.extender.populated import no_budgets, node

MIB = 16384
HALF = pod().asks(core="50", memory="20")


@dataclass
class Replica:
    """A replica that leads, or believes it."""

    server: PodServer
    term: str = "first"
    leads: bool = True
    budgets: QuotaReservations = field(default_factory=no_budgets)
    state: State = field(init=False)
    calls: ApiCalls = field(init=False)
    binder: Binder = field(init=False)

    def __post_init__(self) -> None:
        self.state = State(Dialects(), CapacityRules())
        self.state.replace_nodes([node("n1", 2, MIB), node("n2", 2, MIB)])
        self.calls = ApiCalls(Access("127.0.0.1", self.server.port))
        policy = POLICIES["binpack"](WorkloadMix(()), fleet_of(self.state.nodes().values()))
        rules = BindRules(
            policy_of=lambda _name: policy,
            dialects=Dialects(),
            now_ns=lambda: 1,
            may_decide=lambda: self.leads,
            term=lambda: self.term,
        )
        self.binder = Binder(self.state, self.calls, rules, self.budgets)

    def close(self) -> None:
        self.calls.close()

    def see_all(self) -> None:
        self.state.replace_pods(self.server.listed())

    async def bind(self, name: str, to: str = "n1", uid: str = "") -> None:
        await self.binder.bind(BindCall(name, "team", uid or f"uid-{name}", to))

    def cores_free(self, on: str = "n1") -> list[int]:
        room = self.state.room(on)
        assert room is not None
        return [left.cores for left in room.left]


@pytest.fixture
def server() -> Iterator[PodServer]:
    with serving_pods() as server:
        server.put(manifest("p"))
        yield server


@pytest.fixture
async def replica(server: PodServer) -> AsyncIterator[Replica]:
    """A replica that knows pod p."""
    replica = Replica(server)
    replica.see_all()
    yield replica
    replica.calls.close()


def manifest(name: str, asks: PodBuilder = HALF, **metadata: Any) -> dict[str, Any]:
    named = asks.described(name=name)
    return named.created(creationTimestamp="2026-01-01T00:00:00Z", **metadata).in_phase("Pending").manifest


def writes(server: PodServer) -> list[str]:
    return ["binding" if call.is_binding else call.method for call in server.calls if call.method != "GET"]


def recorded(server: PodServer, name: str = "p") -> list[str]:
    """The cards in its record."""
    record = json.loads(server.annotations(name)[names.PLACEMENT])
    return [card for cards in record["cards"].values() for card in cards]


# --- without faults ---------------------------------------------------------------------------------------------------


async def test_a_bind_is_one_request_that_carries_the_record(server: PodServer, replica: Replica) -> None:
    await replica.bind("p")
    (call,) = server.calls
    assert call.is_binding
    assert call.body["metadata"]["uid"] == "uid-p"
    assert call.body["metadata"]["resourceVersion"] == "101"
    assert server.node("p") == "n1"
    assert recorded(server) == ["n1-0"]
    assert json.loads(server.annotations("p")[names.PLACEMENT])["by"] == RecordWriter.EXTENDER
    assert server.annotations("p")[names.TENCENT + names.PREDICATE_CARDS_SUFFIX + "0"] == "0"
    assert replica.cores_free() == [50, 100]


async def test_the_cards_are_assumed_before_the_answer_arrives(server: PodServer, replica: Replica) -> None:
    server.faults = ["held"]
    binding = asyncio.create_task(replica.bind("p"))
    await server.somebody_is_held()
    assert replica.cores_free() == [50, 100]
    server.release.set()
    await binding


async def test_a_pod_that_the_watch_has_not_shown_is_read(server: PodServer, replica: Replica) -> None:
    server.put(manifest("late"))
    await replica.bind("late")
    assert [call.method for call in server.calls] == ["GET", "POST"]
    assert server.node("late") == "n1"


async def test_two_concurrent_binds_of_a_pod_both_succeed_with_one_write(server: PodServer, replica: Replica) -> None:
    server.faults = ["held"]
    both = [asyncio.create_task(replica.bind("p")) for _ in range(2)]
    await server.somebody_is_held()
    await asyncio.sleep(0)
    assert writes(server) == ["binding"]
    server.release.set()
    await asyncio.gather(*both)
    assert writes(server) == ["binding"]
    assert replica.cores_free() == [50, 100]


# --- pods that are bound already --------------------------------------------------------------------------------------


async def test_a_second_bind_to_the_same_node_succeeds_and_changes_nothing(server: PodServer, replica: Replica) -> None:
    await replica.bind("p")
    before = server.pods["p"]
    await replica.bind("p")
    replica.see_all()
    await replica.bind("p")
    assert server.pods["p"] == before
    assert writes(server) == ["binding"]


async def test_a_bind_by_another_leader_is_accepted_with_its_record(server: PodServer, replica: Replica) -> None:
    container = server.pods["p"]["spec"]["containers"][0]["name"]
    record = json.dumps({"node": "n1", "cards": {container: ["n1-1"]}})
    server.put(_bound(server.pods["p"], "n1", {names.PLACEMENT: record}))
    await replica.bind("p")
    assert server.annotations("p")[names.PLACEMENT] == record
    assert replica.cores_free() == [100, 50]


async def test_a_bind_to_another_node_fails_and_is_forgotten(server: PodServer, replica: Replica) -> None:
    server.put(_bound(server.pods["p"], "n2", {}))
    with pytest.raises(NotBound, match="bound to node n2 already, not to n1"):
        await replica.bind("p")
    assert replica.cores_free("n1") == [100, 100]


def _bound(known: dict[str, Any], to: str, annotations: dict[str, str]) -> dict[str, Any]:
    metadata = {**known["metadata"], "annotations": annotations}
    return {**known, "metadata": metadata, "spec": {**known["spec"], "nodeName": to}}


# --- conflicts --------------------------------------------------------------------------------------------------------


async def test_a_pod_that_changed_meanwhile_is_read_and_bound(server: PodServer, replica: Replica) -> None:
    server.change("p", note="another change")
    await replica.bind("p")
    assert writes(server) == ["binding", "binding"]
    assert server.node("p") == "n1"
    assert replica.cores_free() == [50, 100]


async def test_a_pod_that_was_replaced_under_the_same_name_is_gone(server: PodServer, replica: Replica) -> None:
    server.put(manifest("p", uid="another"))
    with pytest.raises(NotBound, match="pod team/p is gone"):
        await replica.bind("p")
    assert replica.state.pod("uid-p") is None
    assert server.node("p") == ""
    assert replica.cores_free() == [100, 100]


async def test_a_pod_that_was_deleted_is_gone(server: PodServer, replica: Replica) -> None:
    del server.pods["p"]
    with pytest.raises(NotBound, match="pod team/p is gone"):
        await replica.bind("p")
    assert replica.cores_free() == [100, 100]


async def test_the_assumption_is_forgotten_where_the_pod_cannot_be_read_after_a_conflict(
    server: PodServer, replica: Replica
) -> None:
    server.change("p", note="x")
    server.faults = [None, "refused"]
    with pytest.raises(NotBound, match="pod team/p cannot be read"):
        await replica.bind("p")
    assert replica.cores_free() == [100, 100]


# --- no answer --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["unanswered", "refused but done"])
async def test_a_bind_that_was_stored_without_an_answer_is_detected(
    fault: Fault, server: PodServer, replica: Replica
) -> None:
    server.faults = [fault]
    await replica.bind("p")
    assert server.node("p") == "n1"
    assert replica.cores_free() == [50, 100]


@pytest.mark.parametrize("fault", ["unheard", "refused"])
async def test_a_lost_bind_can_never_be_stored_later_and_its_assumption_is_forgotten(
    fault: Fault, server: PodServer, replica: Replica
) -> None:
    server.faults = [fault]
    with pytest.raises(NotBound, match="the API server did not answer; try again"):
        await replica.bind("p")
    assert replica.cores_free() == [100, 100]
    assert server.carry_out(server.calls[0])[0] == 409, "the lost request arrives after all"
    await replica.bind("p")
    assert server.node("p") == "n1"


async def test_the_cards_stay_assumed_until_the_result_is_known(server: PodServer, replica: Replica) -> None:
    server.faults = ["unheard", "unheard", "held"]
    binding = asyncio.create_task(replica.bind("p"))
    await server.somebody_is_held()
    assert replica.cores_free() == [50, 100]
    server.release.set()
    with pytest.raises(NotBound):
        await binding
    assert replica.cores_free() == [100, 100]


@pytest.mark.parametrize("gone", ["deleted", "replaced"])
async def test_a_pod_that_is_deleted_during_an_outage_is_gone(gone: str, server: PodServer, replica: Replica) -> None:
    server.faults = ["unheard", "held"]
    binding = asyncio.create_task(replica.bind("p"))
    await server.somebody_is_held()
    if gone == "deleted":
        del server.pods["p"]
    else:
        server.put(manifest("p", uid="another"))
    server.release.set()
    with pytest.raises(NotBound, match="is gone"):
        await binding
    assert replica.cores_free() == [100, 100]


async def test_the_assumption_is_forgotten_where_the_request_was_not_sent() -> None:
    with serving_pods() as server:
        server.put(manifest("p"))
        replica = Replica(server)
        replica.see_all()
    with pytest.raises(NotBound, match="the API server cannot be reached"):
        await replica.bind("p")
    assert replica.cores_free() == [100, 100]
    replica.calls.close()


# --- leadership -------------------------------------------------------------------------------------------------------


async def test_a_replica_that_does_not_lead_writes_nothing(server: PodServer, replica: Replica) -> None:
    replica.leads = False
    with pytest.raises(NotLeading):
        await replica.bind("p")
    assert server.calls == []
    assert replica.cores_free() == [100, 100]


async def test_a_replica_that_no_longer_leads_keeps_the_fence_of_another(server: PodServer, replica: Replica) -> None:
    server.change("p", **{names.FENCE: "second-0"})
    replica.see_all()
    replica.leads = False
    with pytest.raises(NotLeading):
        await replica.bind("p")
    assert writes(server) == []


async def test_the_fence_of_an_earlier_leader_is_replaced_before_the_bind(server: PodServer, replica: Replica) -> None:
    server.change("p", **{names.FENCE: "old-0"})
    replica.see_all()
    await replica.bind("p")
    assert writes(server) == ["PATCH", "binding"]
    assert server.annotations("p")[names.FENCE].startswith("first-")


async def test_a_replica_that_loses_the_lease_during_an_outage_forgets_the_assumption(
    server: PodServer, replica: Replica
) -> None:
    server.faults = ["held"]
    binding = asyncio.create_task(replica.bind("p"))
    await server.somebody_is_held()
    replica.leads = False
    server.faults = ["unheard"] * 3
    replica.calls.close()
    with pytest.raises(NotLeading):
        await binding
    assert replica.cores_free() == [100, 100]


# --- pods that are not bound ------------------------------------------------------------------------------------------


async def _refusal(server: PodServer, replica: Replica, to: str = "n1") -> str:
    """Returns why pod q is not bound; nothing is written or kept for it."""
    with pytest.raises(NotBound) as why:
        await replica.bind("q", to)
    assert writes(server) == []
    assert replica.cores_free() == [100, 100]
    return str(why.value)


@pytest.mark.parametrize(
    ("asks", "to", "sentence"),
    [
        (pod().asks(core="300"), "n1", "fewer than 3 cards are wholly free"),
        (pod().asks(core="150", memory="1"), "n1", "multiple of 100"),
        (HALF, "n9", "node n9 is unknown to Halfcard"),
    ],
)
async def test_the_error_says_why_a_pod_cannot_be_placed(
    server: PodServer, replica: Replica, asks: PodBuilder, to: str, sentence: str
) -> None:
    server.put(manifest("q", asks))
    assert sentence in await _refusal(server, replica, to)


ZEROS = [{"gpu": 0}, {"core": 0, "memory": "0"}, {"gpu_mem": 0}, {"gpumem": 0, "gpu": 0}, {"sgpu": 0}, {"cpu": "1"}]


@pytest.mark.parametrize("asks", ZEROS, ids=str)
async def test_a_pod_that_requests_no_card_is_bound_anywhere_without_a_record(
    server: PodServer, replica: Replica, asks: dict[str, Any]
) -> None:
    server.put(manifest("q", pod().asks(**asks)))
    await replica.bind("q", "n9")
    assert server.node("q") == "n9"
    assert names.PLACEMENT not in server.annotations("q")
    assert replica.cores_free() == [100, 100]


async def test_a_pod_that_has_ended_is_not_bound(server: PodServer, replica: Replica) -> None:
    server.put(manifest("q") | {"status": {"phase": "Failed"}})
    assert await _refusal(server, replica) == "pod team/q has ended"


async def test_a_pod_with_a_forged_record_is_not_bound(server: PodServer, replica: Replica) -> None:
    record = {names.PLACEMENT: '{"node":"n1","cards":{"c0":["n1-1"]}}'}
    server.put(manifest("q", HALF, annotations=record))
    assert names.PLACEMENT in await _refusal(server, replica)


async def test_pods_with_sidecars_init_containers_and_generated_names_are_bound_with_a_record_for_each_container(
    server: PodServer, replica: Replica
) -> None:
    asks = pod().asks(core="40", memory="8").asks(core="100").init(core="40", memory="8").sidecar(core="10", memory="4")
    server.put(manifest("model-predictor-7d9f-x2x", asks, generateName="model-predictor-7d9f-"))
    await replica.bind("model-predictor-7d9f-x2x")
    assert len(recorded(server, "model-predictor-7d9f-x2x")) == 4
    assert replica.cores_free() in ([0, 50], [50, 0])
