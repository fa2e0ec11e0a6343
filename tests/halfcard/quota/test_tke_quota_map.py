"""The quota map of TKE: what it allows is allowed, and an invalid entry affects only itself."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.quota.pod_location import PodLocation
from halfcard.quota.tke_quota_map import GpuQuotaMap, budgets_of, read_map

NOTHING: Final = {"cards": 0, "shares": 0}


def read(written: Any) -> GpuQuotaMap:
    found = read_map(json.dumps(written))
    assert found is not None
    return found


def test_cards_of_models_and_pools_are_read_as_the_spec_of_a_quota() -> None:
    assert read({"team": {"quota": {"M40": 8, "P100": 0}, "pool": ["public"]}}).specs == {
        "team": {
            "byModel": {"M40": {"cores": 800}, "P100": {"cores": 0}, "*": NOTHING},
            "byPool": {"public": {}, "*": NOTHING},
        }
    }


def test_without_pools_every_pool_is_allowed_and_a_missing_model_has_no_cards() -> None:
    assert read({"team": {"quota": {"T4": 1}}, "b": {}}).specs == {
        "team": {"byModel": {"T4": {"cores": 100}, "*": NOTHING}},
        "b": {"byModel": {"*": NOTHING}},
    }


def test_a_mapped_budget_refers_to_the_config_map_and_counts_by_model() -> None:
    (budget,) = budgets_of(read({"team": {"quota": {"T4": 1}}}), "uid")
    assert (budget.title, budget.ledger, budget.kind) == (
        "kube-system/gpuquota for team",
        "gpuquotamap.team",
        "ConfigMap",
    )
    assert budget.reference == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "kube-system",
        "name": "gpuquota",
        "uid": "uid",
    }
    assert budget.covers("team", {}) and not budget.covers("other", {})
    assert budget.counted_at(PodLocation("", {"cores": 30}, {"Tesla T4": {"cores": 30}})) == {"cores of model T4": 30}
    assert budget.hard["cores of model T4"] == 100


ODD: Final[dict[str, tuple[Any, str]]] = {
    "a number of cards as text": ({"quota": {"T4": "8"}}, "Expected `int`, got `str`"),
    "less than none": ({"quota": {"T4": -1}}, "got -1; so many cards are not below 0"),
    "more than there are": ({"quota": {"T4": 10**9}}, "got 1000000000"),
    "half a card": ({"quota": {"T4": 0.5}}, "Expected `int`, got `float`"),
    "another word": ({"qouta": {"T4": 1}}, "unknown field `qouta`"),
    "no object": ([], "Expected `object`, got `array`"),
}


@pytest.mark.parametrize(("entry", "why"), ODD.values(), ids=ODD)
def test_an_invalid_entry_is_named_and_the_others_count(entry: Any, why: str) -> None:
    found = read({"odd": entry, "team": {"quota": {"T4": 1}}})
    assert found.specs.keys() == {"team"}
    (said,) = found.unreadable
    assert said.startswith('kube-system/gpuquota, key gpu_quota: "odd" limits nothing: ') and why in said


def test_an_invalid_namespace_name_is_an_invalid_entry() -> None:
    assert "no namespace can have this name" in read({"Team A": {}}).unreadable[0]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '{"a": 1'])
def test_invalid_json_is_not_read_as_an_empty_map(text: str) -> None:
    assert read_map(text) is None


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    found = read_map(text)
    assert found is None or not budgets_of(found, "u") or text.lstrip().startswith("{")
