"""What `kubectl get gpuquota` and `kubectl describe` show."""

from __future__ import annotations

from datetime import UTC, datetime

from halfcard.quota.gpu_quota import Exemption
from halfcard.quota.ledger import Entry, Ledger
from quota.reporting.queue_rows import MOST_ROWS, QueueRow
from quota.reporting.status import LedgerUsage, exempted, since, status_of, status_of_each
from quota.usage_index import TopPods

LIVE = TopPods(
    2,
    [
        Entry("team", "train", {"cores": 200, "cards": 2}),
        Entry("team", "note", {"cores": 30, "memory": 5120, "shares": 1, "cores per user=alice": 30}),
    ],
)
BIG = Entry("other", "big", {"cores": 300})
LEDGER = Ledger(
    {"cores": 400, "memory": 65536, "cores per user": 30},
    is_ready=True,
    committed={"cores": 230, "cards": 2, "memory": 5120, "shares": 1, "cores per user=alice": 30},
)


def test_amounts_are_used_of_allowed_in_the_units_of_the_manifest() -> None:
    status = status_of(LEDGER, LIVE)
    assert {key: status[key] for key in ("cores", "memory", "cards", "shares", "pods", "promised", "late")} == {
        "cores": "230/400",
        "memory": "5Gi/64Gi",
        "cards": "2/-",
        "shares": "1/-",
        "pods": 2,
        "promised": 0,
        "late": 0,
    }
    assert status["holders"] == [
        {"pod": "team/train", "cores": "200", "cards": "2"},
        {"pod": "team/note", "cores": "30", "memory": "5Gi", "shares": "1"},
    ]
    assert status["perLabel"] == [{"key": "cores per user=alice", "amount": "30/30"}]


def test_reserved_amounts_count_as_used() -> None:
    reserved = LEDGER._replace(reservations={"w": Entry("team", "new", {"cores": 100})})
    status = status_of(reserved, LIVE)
    assert (status["cores"], status["promised"]) == ("330/400", 1)


def conditions(ledger: Ledger) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["message"]) for each in status_of(ledger)["conditions"]}


def test_conditions_say_whether_it_counts_and_by_how_much_it_is_exceeded() -> None:
    assert conditions(LEDGER)["Ready"][0] == "True" and conditions(LEDGER)["Exceeded"][0] == "False"
    lowered = conditions(LEDGER._replace(hard={"cores": 200, "memory": 4096}))
    assert lowered["Exceeded"] == (
        "True",
        "over by cores=30, memory=1Gi: running pods stay, new pods are refused or wait",
    )
    assert conditions(LEDGER._replace(is_ready=False))["Ready"][0] == "False"


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    first = since(status_of(LEDGER), None, "t1")
    assert {each["lastTransitionTime"] for each in first["conditions"]} == {"t1"}
    later = since(status_of(LEDGER._replace(hard={"cores": 1})), first, "t2")
    assert {each["type"]: each["lastTransitionTime"] for each in later["conditions"]} == {
        "Ready": "t1",
        "Exceeded": "t2",
    }


def test_limits_by_model_and_pool_are_listed_by_place() -> None:
    ledger = Ledger(
        {"cards of model A100": 4, "shares of model A100": 2, "memory of pool lab": 2048},
        committed={"cards of model A100": 3, "cores of model A100": 300},
    )
    assert status_of(ledger)["places"] == [
        {"place": "model A100", "cards": "3/4", "shares": "0/2"},
        {"place": "pool lab", "memory": "0/2Gi"},
    ]


def test_the_status_of_a_default_adds_up_its_namespaces_and_names_those_that_exceed_it() -> None:
    small = LEDGER._replace(hard={"cores": 400}, committed={"cores": 30}, is_ready=False)
    fuller = small._replace(committed={"cores": 430})
    status = status_of_each({"team": LedgerUsage(fuller, LIVE, 1), "other": LedgerUsage(small, TopPods(1, [BIG]), 2)})
    assert (status["cores"], status["pods"], status["waiting"]) == ("460/400", 3, 3)
    assert [each["pod"] for each in status["holders"]] == ["other/big", "team/train", "team/note"]
    ready, exceeded = status["conditions"]
    assert (ready["status"], exceeded["status"]) == ("False", "True")
    assert exceeded["message"].startswith("over in team:")
    apart = {"team": LedgerUsage(small._replace(is_ready=True)), "other": LedgerUsage(small._replace(is_ready=True))}
    assert [each["status"] for each in status_of_each(apart)["conditions"]] == ["True", "False"]


def test_who_waits_is_listed_in_order() -> None:
    first, second = QueueRow("team/a", lacks="cores=20"), QueueRow("team/b", behind="team/a")
    assert status_of(LEDGER, LIVE, 2, [first, second])["queue"] == [
        {"pod": "team/a", "lacks": "cores=20"},
        {"pod": "team/b", "behind": "team/a"},
    ]
    parts = {"team": LedgerUsage(LEDGER, queue=[first]), "other": LedgerUsage(LEDGER, queue=[second] * MOST_ROWS)}
    both = status_of_each(parts)["queue"]
    assert (len(both), both[0]["pod"]) == (MOST_ROWS, "team/a")


def test_the_status_of_an_exempt_quota_has_end_reason_and_excess() -> None:
    exemption = Exemption(datetime(2026, 11, 22, 12, tzinfo=UTC), "the paper is due")
    status = exempted(status_of(LEDGER._replace(hard={"cores": 200}), LIVE), exemption)
    assert status["cores"] == "230/200"
    assert [(each["type"], each["status"], each["message"]) for each in status["conditions"][1:]] == [
        ("Exceeded", "True", "over by cores=30, and exempt"),
        ("Exempt", "True", "the quota limits nothing until 2026-11-22T12:00:00Z: the paper is due"),
    ]
    within = exempted(status_of(LEDGER, LIVE), exemption)
    assert within["conditions"][1] == status_of(LEDGER, LIVE)["conditions"][1]
