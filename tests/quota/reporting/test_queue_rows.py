"""Who waits in a quota, and for what."""

from __future__ import annotations

from typing import Final

from halfcard.quota.ledger import Entry, Ledger
from halfcard.quota.queueing import BlockedPod, WaitingPod, queue
from halfcard.quota.turns import Turn
from quota.reporting.queue_rows import MOST_ROWS, QueueRow, queues

LEDGERS: Final = {
    "own": Ledger({"cores": 200, "memory": 4096}, is_ready=True, committed={"cores": 180, "memory": 4096}),
    "shared": Ledger({"cards": 4}, committed={"cards": 4}),
}


def waiting(pod: str, ledger: str = "own", **charge: int) -> WaitingPod:
    return WaitingPod(pod, "team", pod, 0, Turn(pod), {ledger: Entry("team", pod, charge)})


def rows_of(*pods: WaitingPod) -> dict[str, list[QueueRow]]:
    return dict(queues(queue(pods, LEDGERS).blocked, ()))


def test_the_next_pod_shows_what_it_lacks_and_the_others_whom_they_wait_behind() -> None:
    found = rows_of(waiting("a", cores=50), waiting("b", cores=10), waiting("c", cores=10, memory=1024))
    assert found == {
        "own": [
            QueueRow("team/a", lacks="cores=30"),
            QueueRow("team/b", behind="team/a"),
            QueueRow("team/c", lacks="memory=1Gi", behind="team/b"),
        ]
    }


def test_a_quota_that_is_not_counted_says_so() -> None:
    (row,) = rows_of(waiting("a", "shared", cards=1))["shared"]
    assert "initialised" in row.why and not row.behind


def test_pods_outside_of_the_queue_come_last_and_only_the_first_rows_are_kept() -> None:
    blocked = [BlockedPod(waiting(f"{number}"), "own", obstacle="x") for number in range(MOST_ROWS - 1)]
    out = [("own", QueueRow("team/huge", why="too large")), ("own", QueueRow("team/more")), ("shared", QueueRow("o"))]
    found = queues(blocked, out)
    assert [row.pod for row in found["own"][-2:]] == [f"team/{MOST_ROWS - 2}", "team/huge"]
    assert (len(found["own"]), found["shared"]) == (MOST_ROWS, [QueueRow("o")])
