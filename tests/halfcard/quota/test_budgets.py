"""Quota objects: whom they concern, what they count, and the messages about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from halfcard.quota.budget_messages import exceeded
from halfcard.quota.budgets import Budget, UnreadableBudget, covering, deleted_budget, expand_defaults, read_budget
from halfcard.quota.ledger import Shortage
from halfcard.quota.lending import Terms
from halfcard.quota.pod_location import PodLocation


def own(spec: dict[str, Any], name: str = "gpu", namespace: str = "team") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, "spec": spec}


def shared(spec: dict[str, Any], name: str = "all") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}


def budget(obj: dict[str, Any]) -> Budget:
    found = read_budget(obj)
    assert isinstance(found, Budget), found
    return found


def test_limits_are_read_in_the_units_of_a_ledger() -> None:
    found = budget(own({"hard": {"cores": 150, "memory": "1.5Gi", "cards": 2, "shares": 0}}))
    assert found.hard == {"cores": 150, "memory": 1536, "cards": 2, "shares": 0}
    assert (found.title, found.kind, found.ledger) == ("team/gpu", "GpuQuota", "gpuquota.team.gpu")
    assert budget(own({"hard": {"memory": 2**21}})).hard == {"memory": 2}


def test_limits_per_label_value_have_their_own_keys() -> None:
    found = budget(own({"hard": {"cores": 100}, "perLabel": {"key": "user", "hard": {"cores": 50}}}))
    assert found.hard == {"cores": 100, "cores per user": 50}
    charge = {"cores": 30, "shares": 1}
    assert found.counted(charge, {"user": "alice"}) == {
        "cores": 30,
        "shares": 1,
        "cores per user=alice": 30,
        "shares per user=alice": 1,
    }
    assert found.counted(charge, {})["cores per user="] == 30


def test_only_budgets_with_a_queue_borrow() -> None:
    borrowing = {"cohort": "c", "lendingLimit": {"memory": "2Gi"}}
    spec = {"hard": {"cores": 100}, "borrowing": borrowing}
    assert budget(own({**spec, "onExceeded": "Gate"})).terms == Terms("c", {}, {"memory": 2048})
    assert budget(own(spec)).terms is None


def test_a_default_is_for_each_namespace_that_has_no_quota_of_its_own() -> None:
    labels: dict[str, dict[str, str]] = {"a": {"tier": "x"}, "b": {"tier": "x"}, "c": {}}
    spec = {"hard": {"cores": 60}, "asDefault": True, "namespaces": {"selector": {"matchLabels": {"tier": "x"}}}}
    default, mine = budget(shared(spec, "std")), budget(own({"hard": {"cores": 10}}, namespace="b"))
    (for_a,) = covering([default, mine], "a", labels["a"])
    assert (for_a.title, for_a.kind, for_a.ledger) == ("std for a", "ClusterGpuQuota", "defaultgpuquota.a.std")
    assert (for_a.hard, for_a.reference["uid"], "namespace" in for_a.reference) == ({"cores": 60}, "uid-std", False)
    assert covering([default, mine], "b", labels["b"]) == (mine,)
    assert covering([default, mine], "c", labels["c"]) == ()
    assert expand_defaults([default, mine], labels) == [mine, for_a]


def test_a_default_applies_together_with_shared_quotas() -> None:
    spec = {"hard": {"cores": 60}, "namespaces": {"names": ["a"]}}
    both = [budget(shared(spec, "all")), budget(shared({**spec, "asDefault": True}, "std"))]
    assert [each.title for each in covering(both, "a", {})] == ["all", "std for a"]


def test_an_unknown_namespace_has_the_default_too() -> None:
    default = budget(shared({"hard": {"cores": 60}, "asDefault": True, "namespaces": {"selector": {}}}, "std"))
    assert [each.ledger for each in covering([default], "new", {})] == ["defaultgpuquota.new.std"]


NOON: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_an_exemption_limits_nothing_and_ends_by_itself() -> None:
    exemption = {"until": "2026-11-22T12:00:00Z", "reason": "the paper is due\n"}
    found = budget(own({"hard": {"cores": 100}, "exemption": exemption}))
    assert found.enforced(NOON - timedelta(seconds=1)) == {}
    assert found.enforced(NOON) == {"cores": 100}
    assert str(found.exemption) == r"until 2026-11-22T12:00:00Z: the paper is due\n"
    assert budget(own({"hard": {"cores": 100}})).enforced(NOON) == {"cores": 100}


def test_an_exemption_needs_a_time_zone() -> None:
    found = read_budget(own({"hard": {"cores": 1}, "exemption": {"until": "2026-11-22T12:00:00", "reason": "x"}}))
    assert isinstance(found, UnreadableBudget)


T4: Final = "Tesla T4"
A100: Final = "NVIDIA A100-SXM4-80GB"
ONE_CARD: Final = {"cores": 100, "cards": 1}


def test_limits_by_model_and_pool_have_their_own_keys() -> None:
    found = budget(own({"byModel": {"T4": {"cards": 4}}, "byPool": {"lab": {"memory": "2Gi"}}}))
    assert found.hard == {"cards of model T4": 4, "memory of pool lab": 2048}
    assert found.depends_on_location
    assert not budget(own({"hard": {"cores": 1}})).depends_on_location


PLACES: Final[dict[str, tuple[dict[str, Any], PodLocation, set[str]]]] = {
    "a part of the model's name": ({"byModel": {"t4": {}}}, PodLocation("", ONE_CARD, {T4: ONE_CARD}), {"model t4"}),
    "as a label spells it": (
        {"byModel": {"NVIDIA-A100": {}}},
        PodLocation("", ONE_CARD, {A100: ONE_CARD}),
        {"model NVIDIA-A100"},
    ),
    "several names of one card": (
        {"byModel": {"A100": {}, "A100-SXM4-80GB": {}, "*": {}}},
        PodLocation("", ONE_CARD, {A100: ONE_CARD}),
        {"model A100-SXM4-80GB"},
    ),
    "a model that is not named": ({"byModel": {"A100": {}}}, PodLocation("", ONE_CARD, {T4: ONE_CARD}), set()),
    "all others": ({"byModel": {"A100": {}, "*": {}}}, PodLocation("", ONE_CARD, {T4: ONE_CARD}), {"model *"}),
    "a pool": ({"byPool": {"lab": {}, "*": {}}}, PodLocation("lab", ONE_CARD, {T4: ONE_CARD}), {"pool lab"}),
    "a pool that is only like it": ({"byPool": {"lab": {}}}, PodLocation("lab-2", ONE_CARD, {T4: ONE_CARD}), set()),
    "no pool": ({"byPool": {"lab": {}, "*": {}}}, PodLocation("", ONE_CARD, {T4: ONE_CARD}), {"pool *"}),
    "both": (
        {"byModel": {"*": {}}, "byPool": {"*": {}}},
        PodLocation("", ONE_CARD, {T4: ONE_CARD}),
        {"model *", "pool *"},
    ),
}


@pytest.mark.parametrize(("spec", "place", "counted"), PLACES.values(), ids=PLACES)
def test_a_pod_is_counted_for_its_model_and_pool(spec: dict[str, Any], place: PodLocation, counted: set[str]) -> None:
    found = budget(own(spec)).counted_at(place)
    assert found == {f"{key} of {named}": amount for named in counted for key, amount in ONE_CARD.items()}


CONCERNED: Final[dict[str, tuple[dict[str, Any], set[str]]]] = {
    "by name": ({"names": ["a", "c"]}, {"a", "c"}),
    "by label": ({"selector": {"matchLabels": {"tier": "gold"}}}, {"b"}),
    "both": ({"names": ["a"], "selector": {"matchLabels": {"tier": "gold"}}}, {"a", "b"}),
    "all": ({"selector": {}}, {"a", "b", "c"}),
    "in": (
        {"selector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold", "tin"]}]}},
        {"b", "c"},
    ),
    "not in": (
        {"selector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["tin"]}]}},
        {"a", "b"},
    ),
    "exists": ({"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}, {"b", "c"}),
    "does not exist": ({"selector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}}, {"a"}),
    "no namespace": ({}, set()),
}
NAMESPACES: Final = {"a": {}, "b": {"tier": "gold"}, "c": {"tier": "tin"}}


@pytest.mark.parametrize(("namespaces", "concerned"), CONCERNED.values(), ids=CONCERNED)
def test_a_shared_quota_covers_namespaces_by_name_and_label(namespaces: dict[str, Any], concerned: set[str]) -> None:
    found = budget(shared({"hard": {"cores": 1}, "namespaces": namespaces}))
    assert {name for name, labels in NAMESPACES.items() if found.covers(name, labels)} == concerned


def test_a_namespaced_quota_covers_only_its_namespace() -> None:
    found = budget(own({"hard": {"cores": 1}, "namespaces": {"selector": {}}}))
    assert found.covers("team", {}) and not found.covers("other", {})


def test_a_quota_is_the_same_until_it_is_created_again() -> None:
    one = deleted_budget("gpuquota.team.gpu")._replace(uid="one", hard={"cores": 100})
    assert one.is_same(one._replace(hard={"cores": 50}, gates=True))
    assert not one.is_same(one._replace(uid="another"))
    assert not one.is_same(deleted_budget("gpuquota.other.gpu")._replace(uid="one"))


def test_ledgers_are_always_written_in_one_order() -> None:
    everybody = {"hard": {"cores": 1}, "namespaces": {"selector": {}}}
    budgets = [
        budget(own({"hard": {"cores": 1}}, "b")),
        budget(shared(everybody)),
        budget(own({"hard": {"cores": 1}}, "a")),
    ]
    names = [each.ledger for each in covering(budgets, "team", {})]
    assert names == ["clustergpuquota.all", "gpuquota.team.a", "gpuquota.team.b"]
    assert [each.title for each in covering(budgets, "other", {})] == ["all"]


def test_the_ledger_of_the_smallest_quota_is_written_first() -> None:
    hard: list[dict[str, Any]] = [{}, {"cores": 1600}, {"cores": 9000, "shares": 8}, {"cards": 4}, {"memory": "16Gi"}]
    budgets = [budget(own({"hard": each}, f"q{at}")) for at, each in enumerate(hard)]
    assert [each.name for each in covering(budgets, "team", {})] == ["q4", "q2", "q3", "q1", "q0"]


ODD: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "memory": (own({"hard": {"memory": "lots"}}), "team/gpu limits nothing: spec.hard.memory: got 'lots'"),
    "cores": (own({"hard": {"cores": "many"}}), "Expected `int"),
    "operator": (
        shared({"namespaces": {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}}),
        "all limits nothing: Invalid enum value 'Like'",
    ),
    "spec": (own([]), "team/gpu limits nothing: Expected `object`"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("obj", "words"), ODD.values(), ids=ODD)
def test_an_invalid_quota_limits_nothing_and_says_why(obj: dict[str, Any], words: str) -> None:
    found = read_budget(obj)
    assert isinstance(found, UnreadableBudget)
    assert words in str(found)


@pytest.mark.parametrize(
    "ledger", ["gpuquota.team.gpu", "gpuquota.team.gpu.v2", "clustergpuquota.all.v2", "defaultgpuquota.team.std.v2"]
)
def test_the_budget_of_a_deleted_quota_has_only_its_ledger(ledger: str) -> None:
    assert deleted_budget(ledger).ledger == ledger
    assert (
        not deleted_budget(ledger).hard
        and not deleted_budget(ledger).uid
        and not deleted_budget(ledger).covers("other", {})
    )


def test_a_refusal_has_the_form_of_native_quota_and_says_what_is_missing() -> None:
    assert exceeded("team/gpu", [Shortage("cores", 30, 80, 100)]) == (
        "exceeded quota: team/gpu, requested: cores=30, used: cores=80, limited: cores=100 "
        "(10 more needed: 0.30 card asked, 0.20 card free)"
    )
    message = exceeded("all", [Shortage("memory", 5120, 62 * 1024, 64 * 1024), Shortage("cards per user=al", 1, 2, 2)])
    assert message == (
        "exceeded quota: all, requested: memory=5Gi,cards per user=al=1, used: memory=62Gi,cards per user=al=2, "
        "limited: memory=64Gi,cards per user=al=2 "
        "(3Gi more needed: 5 GiB asked, 2 GiB free; 1 more needed: 1 whole card asked, 0 whole cards free)"
    )


def test_a_refusal_fits_into_an_event_for_any_label_value() -> None:
    message = exceeded("team/gpu", [Shortage(f"cores per user={'x' * 500}", 1, 1, 1)] * 9)
    assert len(message.encode()) <= 900
