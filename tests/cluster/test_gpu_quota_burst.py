"""A burst on three replicas of the webhook while replicas and the leader are killed: never one pod too many, none lost.

HALFCARD_QUOTA_CREATES and HALFCARD_QUOTA_ROUNDS choose another load than the usual one.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import pytest

from halfcard.ledger import used

from .cluster import Cluster
from .installation import Installation, Replica
from .manifests import share
from .quota_service import QuotaService
from .waiting import wait_until

CREATES: Final = int(os.environ.get("HALFCARD_QUOTA_CREATES", "2000"))
ROUNDS: Final = int(os.environ.get("HALFCARD_QUOTA_ROUNDS", "1"))
ROOM: Final = 100
CONNECTIONS: Final = 100
EXPIRED_WITHIN_S: Final = 150.0  # 45 s of the API server's time, two looks 10 s apart, and a leader that is new

say: Final = print

pytestmark = pytest.mark.timeout(300 + 300 * ROUNDS)


@pytest.fixture
def quotas() -> Iterator[QuotaService]:
    with Cluster() as cluster:
        webhook = Installation(cluster)
        for _ in range(3):
            webhook.add_replica()
        webhook.register()
        service = QuotaService(webhook)
        for _ in range(2):
            service.add_replica()
        service.wait_led()
        yield service


@dataclass
class Burst:
    """Pods that are all created at once; `answers` counts the statuses of the answers."""

    quotas: QuotaService
    namespace: str
    answers: Counter[int] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, disturb: Callable[[], None]) -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            creating = pool.map(self._create, [f"p{number:05}" for number in range(CREATES)])
            disturb()
            list(creating)

    def _create(self, name: str) -> None:
        answer = self.quotas.webhook.create(self.namespace, share(name))
        with self._lock:
            self.answers[answer.status] += 1

    def wait_for(self, answers: int) -> None:
        wait_until(lambda: self.answers.total() >= answers, what=f"{answers} answers", seconds=120)

    def stored(self) -> int:
        return len(self.quotas.cluster.request("GET", f"/api/v1/namespaces/{self.namespace}/pods").must()["items"])


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_burst_while_replicas_and_the_leader_are_killed(quotas: QuotaService, round_: int) -> None:
    team = quotas.cluster.create_namespace(f"team-{round_}")
    ledger = quotas.allow(team, hard={"shares": ROOM})
    burst = Burst(quotas, team)

    def disturb() -> None:
        burst.wait_for(CREATES // 20)
        kill(quotas.webhook, quotas.webhook.replicas[0])
        burst.wait_for(CREATES // 10)
        leader = quotas.leader() or quotas.replicas[0]
        leader.program.kill()
        quotas.replicas.remove(leader)
        burst.wait_for(CREATES // 3)
        kill(quotas.webhook, quotas.webhook.replicas[0])
        quotas.webhook.add_replica()

    burst.run(disturb)
    stored, opened = burst.stored(), quotas.ledger(ledger).open
    say(f"{dict(burst.answers)}; {stored} stored, {len(opened)} promised")
    assert ROOM - len(opened) <= stored <= ROOM
    assert stored <= burst.answers[201] + burst.answers[500]
    quotas.wait_led()
    wait_until(lambda: not quotas.ledger(ledger).open, what="promises to be settled", seconds=EXPIRED_WITHIN_S)
    assert used(quotas.ledger(ledger))["shares"] == stored
    fill(quotas, team, stored)
    assert burst.stored() == ROOM
    empty(quotas, team)
    wait_until(lambda: used(quotas.ledger(ledger)) == {}, what="all room to be free again", seconds=60)


def kill(webhook: Installation, replica: Replica) -> None:
    """By SIGKILL; the Service forgets it a moment later."""
    replica.program.kill()
    webhook.cluster.withdraw("halfcard-system", "halfcard-admission", replica.port)
    webhook.replicas.remove(replica)


def fill(quotas: QuotaService, team: str, stored: int) -> None:
    """What was free is usable, to the last share and not one more."""
    for number in range(ROOM - stored):
        quotas.cluster.wait_until(
            lambda name=f"again-{number}": quotas.webhook.create(team, share(name)).ok,  # type: ignore[misc]
            what="room that is free to be given",
        )
    assert quotas.webhook.create(team, share("one-too-many")).status == 403


def empty(quotas: QuotaService, team: str) -> None:
    quotas.cluster.request(
        "DELETE", f"/api/v1/namespaces/{team}/pods", {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    ).must()
