"""Binding within budgets of a model: no pod is bound without a reservation, and a pod that is not bound keeps none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import pytest

from extender.bind.binder import NotBound, NotLeading
from extender.bind.quota_reservations import NoBudgetError, QuotaReservations
from halfcard import names
from halfcard.quota.budgets import Budget, read_budget
from halfcard.quota.ledger import Entry, Ledger, StoredPods, commit, used
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import LedgerStore
from tests.builders import pod
from tests.extender.bind.test_binder import Replica, manifest
from tests.extender.bind.test_takeover import take_over, takeover
from tests.extender.pod_server import Fault, PodServer, serving_pods
from tests.kube.ledger_server import LedgerServer, serving_ledgers
from tests.waiting import until

ON_T4: Final = "cores of model T4"
NAME: Final = "gpuquota.team.gpu"


def budget() -> Budget:
    spec = {"byModel": {"T4": {"cores": 100}}}
    found = read_budget({"metadata": {"name": "gpu", "namespace": "team", "uid": "q"}, "spec": spec})
    assert isinstance(found, Budget)
    return found


COUNTED: Final = commit(Ledger(budget().hard, quota_uid="q"), 0, StoredPods({}, {}))


@dataclass
class Scene:
    """Pods p and q of half a card each, a budget of one card, a replica that leads and the next one."""

    pods: PodServer
    ledgers: LedgerServer
    replica: Replica
    next: Replica

    def open(self) -> list[Entry]:
        return [*self.ledgers.ledger(NAME).reservations.values()]

    async def nothing_open(self) -> None:
        await until(lambda: not self.open())

    def hold(self, cores: int) -> None:
        self.ledgers.put(NAME, COUNTED._replace(committed={ON_T4: cores}))


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    with serving_pods() as pods, serving_ledgers() as ledgers:
        pods.put(manifest("p"))
        pods.put(manifest("q"))
        ledgers.put(NAME, COUNTED)
        calls = ApiCalls(Access("127.0.0.1", ledgers.port))

        def replica(term: str) -> Replica:
            clock = asyncio.get_running_loop().time
            budgets = QuotaReservations(lambda _: (budget(),), LedgerStore(calls, names.NAMESPACE), clock)
            budgets.on_ledger_change(NAME, ledgers.seen(NAME))
            return Replica(pods, term, budgets=budgets)

        one, other = replica("first"), replica("second")
        one.see_all()
        yield Scene(pods, ledgers, one, other)
        for each in (one, other, calls):
            each.close()


async def test_a_pod_is_bound_with_a_reservation_of_what_it_counts_where_it_goes(scene: Scene) -> None:
    await scene.replica.bind("p")
    assert scene.pods.node("p") == "n1"
    (entry,) = scene.open()
    assert (entry.namespace, entry.pod, entry.charge[ON_T4]) == ("team", "p", 50)


async def test_a_pod_that_would_be_too_much_is_not_bound_and_its_cards_are_free_again(scene: Scene) -> None:
    scene.hold(60)  # the replica has not seen it yet
    with pytest.raises(NotBound, match="exceeded quota: team/gpu, requested: cores of model T4=50"):
        await scene.replica.bind("p")
    assert scene.pods.node("p") == "" and scene.open() == []
    assert scene.replica.cores_free() == [100, 100]


async def test_a_refused_bind_names_the_budget_or_the_cards(scene: Scene) -> None:
    scene.hold(60)
    scene.replica.binder.budgets.on_ledger_change(NAME, scene.ledgers.seen(NAME))
    with pytest.raises(NotBound, match=r"^node n1: exceeded quota: team/gpu, requested: cores of model T4=50, .*"):
        await scene.replica.bind("p")
    scene.pods.put(manifest("large", pod().asks(core="300")))
    scene.replica.see_all()
    with pytest.raises(NotBound, match=r"^node n1: fewer than 3 cards are wholly free; the scheduler will choose"):
        await scene.replica.bind("large")


async def test_two_that_go_at_once_where_there_is_room_for_one_are_not_both_bound(scene: Scene) -> None:
    scene.hold(50)
    went = await asyncio.gather(scene.replica.bind("p"), scene.replica.bind("q"), return_exceptions=True)
    assert sorted(type(each).__name__ for each in went) == ["NoneType", "NotBound"]
    assert used(scene.ledgers.ledger(NAME))[ON_T4] == 100


@pytest.mark.parametrize("fault", ["unheard", "refused"])
async def test_a_bind_that_certainly_failed_releases_its_reservation(fault: Fault, scene: Scene) -> None:
    scene.pods.faults = [fault]
    with pytest.raises(NotBound):
        await scene.replica.bind("p")
    await scene.nothing_open()
    await scene.replica.bind("p")
    assert len(scene.open()) == 1


async def test_the_reservation_of_a_bind_with_an_unknown_result_stays(scene: Scene) -> None:
    scene.pods.faults = ["held"]
    binding = asyncio.create_task(scene.replica.bind("p"))
    await scene.pods.somebody_is_held()
    scene.replica.leads = False
    scene.pods.faults = ["unanswered"]
    binding.cancel()
    await asyncio.wait([binding])
    assert len(scene.open()) == 1
    scene.pods.release.set()


async def test_the_next_leader_releases_the_reservation_of_a_bind_that_can_no_longer_land(scene: Scene) -> None:
    scene.pods.faults = ["held"]
    binding = asyncio.create_task(scene.replica.bind("p"))
    await scene.pods.somebody_is_held()
    binding.cancel()
    await asyncio.wait([binding])
    (reservation,) = (ledger := scene.ledgers.ledger(NAME)).reservations
    created = {"uid-p": Entry("team", "p", {})}  # by the webhook, and not committed yet
    scene.ledgers.put(NAME, ledger._replace(reservations={**ledger.reservations, **created}))
    scene.next.binder.budgets.on_ledger_change(NAME, scene.ledgers.seen(NAME))
    await take_over(scene.next)
    await until(lambda: reservation not in scene.ledgers.ledger(NAME).reservations)
    assert scene.ledgers.ledger(NAME).reservations == created
    scene.pods.release.set()


async def test_the_next_leader_keeps_the_reservation_of_a_bind_that_landed_at_the_last_moment(
    scene: Scene,
) -> None:
    budgets = scene.next.binder.budgets

    async def refresh() -> None:
        scene.next.see_all()
        await scene.replica.bind("p")
        budgets.on_ledger_change(NAME, scene.ledgers.seen(NAME))

    await takeover(scene.next, refresh).run()
    await scene.next.bind("q")
    assert {entry.pod for entry in scene.open()} == {"p", "q"}


async def test_no_pod_is_bound_whose_reservation_was_written_too_late_to_decide(scene: Scene) -> None:
    scene.ledgers.faults = ["held"]
    binding = asyncio.create_task(scene.replica.bind("p"))
    await asyncio.to_thread(scene.ledgers.held.wait, 10)
    scene.replica.leads = False
    scene.ledgers.release.set()
    with pytest.raises(NotLeading):
        await binding
    assert scene.pods.node("p") == "" and scene.replica.cores_free() == [100, 100]
    await scene.nothing_open()


async def test_no_node_is_allowed_while_the_budget_is_not_counted(scene: Scene) -> None:
    scene.ledgers.put(NAME, COUNTED._replace(quota_uid="another quota of this name"))
    budgets = scene.replica.binder.budgets
    budgets.on_ledger_change(NAME, scene.ledgers.seen(NAME))
    facts = scene.replica.state.pod("uid-p")
    assert facts is not None
    with pytest.raises(NoBudgetError, match="quota usage is still being initialised; the scheduler will try again"):
        budgets.limits(facts)
    with pytest.raises(NotBound, match="still being initialised"):
        await scene.replica.bind("p")


async def test_a_pod_that_came_past_its_quota_waits_until_there_is_room(scene: Scene) -> None:
    scene.ledgers.put(NAME, COUNTED._replace(late=frozenset({"uid-p"})))
    scene.replica.binder.budgets.on_ledger_change(NAME, scene.ledgers.seen(NAME))
    with pytest.raises(NotBound, match="pod team/p bypassed it while it was exceeded"):
        await scene.replica.bind("p")
    await scene.replica.bind("q")
    scene.ledgers.put(NAME, COUNTED)
    scene.replica.binder.budgets.on_ledger_change(NAME, scene.ledgers.seen(NAME))
    await scene.replica.bind("p")
