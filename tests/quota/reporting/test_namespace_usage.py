"""What members of a namespace may read about a quota that they share with others."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from cli.quota_commands.gpu_quotas import QuotaAnswer
from cli.quota_commands.namespace_usages import budget_of
from halfcard.quota.budgets import Budget
from halfcard.quota.gpu_quota import Exemption, Namespaces
from halfcard.quota.ledger import Entry, Ledger
from quota.reporting.namespace_usage import NamespaceUsage, object_name, usage_of
from quota.usage_index import CountedPod, UsageIndex

HERE, THERE = "team-a", "secret-team"
SHARED: Final = Budget("", "research", "uid", {"cores": 400, "cores per user": 200}, "user", Namespaces())
LEDGER: Final = Ledger(SHARED.hard, is_ready=True)
KEYS: Final = ("cores", "memory", "cards", "shares")


def index_of(*entries: Entry) -> UsageIndex:
    index = UsageIndex()
    for number, entry in enumerate(entries):
        index.put(f"uid-{number}", CountedPod(entry))
    return index


def seen(
    *entries: Entry, budget: Budget = SHARED, is_exempt: bool = False, waiting: int = 0, **ledger: Any
) -> dict[str, Any]:
    """Returns what the members of HERE read where these pods are stored."""
    index = index_of(*entries)
    part = NamespaceUsage(HERE, index.tally(HERE).total, index.top(HERE), waiting)
    return usage_of(budget, LEDGER._replace(committed=index.total, **ledger), part, is_exempt=is_exempt)


OURS: Final = Entry(HERE, "train", {"cores": 30, "shares": 1, "cores per user=eve": 30})
THEIRS: Final = Entry(THERE, "hidden-pod", {"cores": 150, "cards": 1, "cores per user=mallory": 150})


def test_the_amounts_are_those_of_all_and_the_own_ones_stand_beside_them() -> None:
    status = seen(OURS, THEIRS, waiting=2)
    assert (status["cores"], status["cards"], status["here"]["cores"]) == ("180/400", "1/-", "30")
    assert (status["pods"], status["waiting"], status["counts"]) == (1, 2, "Together")
    assert status["holders"] == [{"pod": "team-a/train", "cores": "30", "shares": "1"}]
    assert status["perLabel"] == [{"key": "cores per user=eve", "amount": "30/200"}]


def test_reservations_count_as_used_and_the_own_ones_as_promised() -> None:
    status = seen(OURS, reservations={"a": OURS, "b": THEIRS})
    assert (status["cores"], status["here"]["cores"], status["promised"]) == ("210/400", "60", 1)


def test_loans_are_among_what_is_allowed_and_their_quotas_have_no_names() -> None:
    status = seen(
        OURS, lent={"gpuquota.secret-team.gpu": {"cores": 100}}, borrowed={"gpuquota.other.gpu": {"cores": 50}}
    )
    assert status["cores"] == "30/350"
    assert not {"lent", "borrowed"} & status.keys()


def test_an_exempt_quota_says_so() -> None:
    exemption = Exemption(datetime(2026, 12, 1, tzinfo=UTC), "the paper is due")
    status = seen(OURS, budget=SHARED._replace(exemption=exemption), is_exempt=True, hard={})
    assert [each["type"] for each in status["conditions"]] == ["Ready", "Exceeded", "Exempt"]
    assert status["cores"] == "30/400"


LABELS: Final = {HERE: "eve", THERE: "mallory"}
ENTRIES: Final = st.lists(
    st.builds(
        lambda where, pod, charge, own: Entry(
            where, f"{pod}-of-{where}", {**charge, **({f"cores per user={LABELS[where]}": own} if own else {})}
        ),
        st.sampled_from((HERE, THERE)),
        st.sampled_from("pqr"),
        st.dictionaries(st.sampled_from(KEYS), st.integers(0, 500), max_size=4),
        st.integers(0, 500),
    ),
    max_size=8,
)


@given(ENTRIES, ENTRIES)
def test_nothing_of_another_namespace_has_a_name(stored: list[Entry], reserved: list[Entry]) -> None:
    status = seen(*stored, reservations={f"r{number}": entry for number, entry in enumerate(reserved)})
    written = json.dumps(status)
    assert THERE not in written and "mallory" not in written


@given(
    ENTRIES, st.dictionaries(st.sampled_from((*KEYS, "cards of model T4", "cores of pool lab")), st.integers(0, 900))
)
def test_the_command_reads_the_limits_and_the_usage_that_were_written(
    stored: list[Entry], hard: dict[str, int]
) -> None:
    budget = SHARED._replace(hard=hard)
    usage = {"metadata": {"namespace": HERE, "name": "research", "uid": "u"}, "status": seen(*stored, budget=budget)}
    assert budget_of(usage).hard == hard
    assert (budget_of(usage).kind, budget_of(usage).title) == (budget.kind, budget.title)


def test_each_kind_of_quota_keeps_its_name() -> None:
    for budget in (
        SHARED,
        SHARED._replace(namespace=HERE, is_default=True),
        SHARED._replace(namespace=HERE, is_mapped=True),
    ):
        usage = {
            "metadata": {"namespace": HERE, "name": object_name(budget), "uid": "u"},
            "status": seen(OURS, budget=budget),
        }
        assert (budget_of(usage).kind, budget_of(usage).title) == (budget.kind, budget.title)


def test_a_pod_that_does_not_fit_is_named_as_such_from_a_usage_alone() -> None:
    status = seen(OURS, THEIRS)
    budget = budget_of({"metadata": {"namespace": HERE, "name": "research", "uid": "u"}, "status": status})
    answer = QuotaAnswer(budget, {"cores": 180, "memory": 0, "cards": 1, "shares": 1}, status)
    assert [(each.key, each.missing) for each in answer.shortages({"cores": 300})] == [("cores", 80)]
