"""Bursts on three replicas of the webhook while replicas and the leader are killed: never too many pods, none lost.

HALFCARD_QUOTA_CREATES and HALFCARD_QUOTA_ROUNDS change the load of the first kind of budget.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from devcluster.control_plane.client import ApiResponse
from devcluster.objects import Object
from devcluster.services.installation import Installation, Replica
from devcluster.services.quota_installation import QuotaInstallation, cluster_with_quotas
from devcluster.waiting import wait_until
from halfcard.quota.ledger import Ledger, used

from .contention import create_all, slowed
from .manifests import share

CREATES: Final = int(os.environ.get("HALFCARD_QUOTA_CREATES", "2000"))
ROUNDS: Final = int(os.environ.get("HALFCARD_QUOTA_ROUNDS", "1"))
FEWER: Final = 400
"""Creates for each of the other kinds of budgets."""

ROOM: Final = 100
CONNECTIONS: Final = 100
EXPIRED_WITHIN_S: Final = 150.0  # 45 s of the API server's time, two checks 10 s apart, and a new leader

say: Final = print

pytestmark = pytest.mark.timeout(300 + 300 * ROUNDS)


@pytest.fixture(scope="module")
def quotas() -> Iterator[QuotaInstallation]:
    with cluster_with_quotas(webhooks=3, services=2) as service:
        yield service


@dataclass
class Burst:
    """Pods that are all created at once; `answers` counts the statuses of the answers.

    Attributes:
        places: namespaces and labels of the pods, taken in turn.
    """

    quotas: QuotaInstallation
    places: Sequence[tuple[str, dict[str, str]]]
    answers: Counter[int] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, creates: int, disturb: Callable[[], None]) -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            creating = pool.map(self.create, range(creates))
            disturb()
            list(creating)

    def create(self, number: int) -> ApiResponse:
        namespace, labels = self.places[number % len(self.places)]
        item = share(f"p{number:05}")
        item["metadata"]["labels"] = labels
        answer = self.quotas.webhook.create(namespace, item)
        with self._lock:
            self.answers[answer.status] += 1
        return answer

    def wait_for(self, answers: int) -> None:
        wait_until(lambda: self.answers.total() >= answers, what=f"{answers} answers", seconds=120)

    def namespaces(self) -> set[str]:
        return {namespace for namespace, _ in self.places}

    def pods(self) -> list[Object]:
        """Returns the pods that use a share: gated pods use none."""
        paths = [f"/api/v1/namespaces/{namespace}/pods" for namespace in self.namespaces()]
        found = [each for path in paths for each in self.quotas.cluster.request("GET", path).must()["items"]]
        return [each for each in found if not each["spec"].get("schedulingGates")]

    def stored(self) -> int:
        return len(self.pods())

    def check_free_shares(self) -> None:
        """Checks that exactly the free shares can be used."""
        for number in range((ROOM - self.stored() + 1) * len(self.places)):
            self.quotas.cluster.wait_until(
                lambda number=CREATES + number: self.create(number).status in (201, 403, 409),  # type: ignore[misc]
                what="a final answer",
            )
        self.quotas.cluster.wait_until(lambda: self.stored() == ROOM, what="the whole quota to be used", seconds=60)

    def empty(self) -> None:
        for namespace in self.namespaces():
            path = f"/api/v1/namespaces/{namespace}/pods"
            self.quotas.cluster.request("DELETE", path, {"gracePeriodSeconds": 0}).must()


Kind = Callable[[QuotaInstallation, str], tuple[str, Burst]]
"""Creates a budget; returns the name of its ledger, and pods that request more than it allows."""


def of_one_namespace(quotas: QuotaInstallation, team: str) -> tuple[str, Burst]:
    return quotas.allow(team, hard={"shares": ROOM}), Burst(quotas, [(team, {})])


def of_three_namespaces(quotas: QuotaInstallation, team: str) -> tuple[str, Burst]:
    teams = [team, *[quotas.cluster.create_namespace(f"{team}-{number}") for number in range(2)]]
    ledger = quotas.allow_together(team, hard={"shares": ROOM}, namespaces={"names": teams})
    return ledger, Burst(quotas, [(each, {}) for each in teams])


def of_each_user(quotas: QuotaInstallation, team: str) -> tuple[str, Burst]:
    ledger = quotas.allow(team, perLabel={"key": "user", "hard": {"shares": ROOM // 4}})
    return ledger, Burst(quotas, [(team, {"user": user}) for user in ("ann", "bob", "eve", "joe")])


def with_gate(quotas: QuotaInstallation, team: str) -> tuple[str, Burst]:
    return quotas.allow(team, hard={"shares": ROOM}, onExceeded="Gate"), Burst(quotas, [(team, {})])


def with_borrowing(quotas: QuotaInstallation, team: str) -> tuple[str, Burst]:
    other = quotas.cluster.create_namespace(f"{team}-other")
    spec: dict[str, Any] = {"hard": {"shares": ROOM // 2}, "onExceeded": "Gate", "borrowing": {"cohort": team}}
    quotas.allow(other, **spec)
    return quotas.allow(team, **spec), Burst(quotas, [(team, {})])


GATED: Final = (with_gate, with_borrowing)

BURSTS: Final = [
    *[(of_one_namespace, CREATES)] * ROUNDS,
    (of_three_namespaces, FEWER),
    (of_each_user, FEWER),
    *[(kind, FEWER) for kind in GATED],
]


@pytest.mark.parametrize(("kind", "creates"), BURSTS)
def test_a_burst_while_replicas_and_the_leader_are_killed(
    quotas: QuotaInstallation, request: pytest.FixtureRequest, kind: Kind, creates: int
) -> None:
    team = quotas.cluster.create_namespace(f"team-{abs(hash(request.node.name)) % 10**8}")
    ledger, burst = kind(quotas, team)

    def disturb() -> None:
        burst.wait_for(creates // 20)
        kill(quotas.webhook, quotas.webhook.replicas[0])
        burst.wait_for(creates // 10)
        leader = quotas.leader() or quotas.replicas[0]
        leader.program.kill()
        quotas.replicas.remove(leader)
        burst.wait_for(creates // 3)
        kill(quotas.webhook, quotas.webhook.replicas[0])
        quotas.webhook.add_replica()

    burst.run(creates, disturb)
    stored, opened = burst.stored(), quotas.ledger(ledger).reservations
    say(f"{dict(burst.answers)}; {stored} stored, {len(opened)} reserved")
    assert stored <= ROOM
    assert stored <= burst.answers[201] + burst.answers[500]
    assert ROOM - len(opened) <= stored or kind in GATED, "gated pods are still being released"
    quotas.add_replica()
    quotas.webhook.add_replica()
    quotas.wait_led()
    wait_until(
        lambda: is_settled(quotas.ledger(ledger), burst), what="reservations to be settled", seconds=EXPIRED_WITHIN_S
    )
    burst.check_free_shares()
    burst.empty()
    wait_until(
        lambda: is_free(quotas.ledger(ledger)),
        what="the whole quota to be free again",
        seconds=90,
        details=lambda: "\n".join([f"{quotas.ledger(ledger)}", *[each.program.log_tail() for each in quotas.replicas]]),
    )


@pytest.mark.parametrize(("creates", "room", "share_of_core"), [(400, 50, 0.5), (60, 60, 0.25)])
def test_all_that_fits_in_overlapping_quotas_is_stored_at_the_second_try_by_slow_webhooks(
    quotas: QuotaInstallation, request: pytest.FixtureRequest, creates: int, room: int, share_of_core: float
) -> None:
    prefix = f"o{abs(hash(request.node.name)) % 10**8}"
    teams = [quotas.cluster.create_namespace(f"{prefix}-{at}") for at in range(4)]
    covered = [teams, teams[:3], teams[1:], teams, teams[:2], teams[2:], teams, teams]
    hard = [400, 300, 350, 120, 200, 210, room, 90]
    ledgers = [
        quotas.allow_together(f"{prefix}-{at}", hard={"shares": most}, namespaces={"names": some})
        for at, (most, some) in enumerate(zip(hard, covered, strict=True))
    ]
    with slowed([each.program for each in quotas.webhook.replicas], share_of_core):
        outcomes = create_all(quotas, teams, creates, tries=2)
    say(Counter(each.statuses for each in outcomes))
    assert sum(each.stored for each in outcomes) == room, [each for each in outcomes if not each.stored][:5]
    quotas.cluster.wait_until(
        lambda: not any(quotas.ledger(each).reservations for each in ledgers),
        what="nothing to be reserved for pods that are not stored",
        seconds=15,
    )
    for each in teams:
        quotas.cluster.request("DELETE", f"/api/v1/namespaces/{each}/pods", {"gracePeriodSeconds": 0}).must()


def is_settled(ledger: Ledger, burst: Burst) -> bool:
    """Every reservation is committed or released, and usage equals the stored pods."""
    return not ledger.reservations and used(ledger)["shares"] == burst.stored()


def is_free(ledger: Ledger) -> bool:
    """Nothing is used or borrowed."""
    return used(ledger) == {} and not ledger.borrowed


def kill(webhook: Installation, replica: Replica) -> None:
    """Kills a replica, and then removes it from the Service."""
    replica.program.kill()
    webhook.cluster.withdraw("halfcard-system", "halfcard-admission", replica.port)
    webhook.replicas.remove(replica)
