from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.claims import CARDS, SHARES
from halfcard.dialects import Dialects
from halfcard.patches import PatchOperation, apply
from halfcard.placing.demand import needs_of
from halfcard.pod.request_totals import pod_cost
from halfcard.pod.requests import read_pod
from halfcard.quantity import NANOS
from halfcard.quota.charge import charge
from halfcard.quota.derived_resources import DerivedSettings, derived_due
from tests.builders import Amount, PodBuilder, pod

DIALECTS: Final = Dialects()
DCARDS, DSHARES = names.DERIVED_CARDS, names.DERIVED_SHARES
MODELS: Final = DerivedSettings(("A100", "A100-SXM4-80GB", "T4"))


def due(built: PodBuilder, derived: DerivedSettings | None = MODELS) -> list[dict[str, int]]:
    """The derived resources of each container."""
    asked = read_pod(built.read, DIALECTS)
    return [dict(amounts) for amounts in derived_due(built.read, asked, derived)]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"core": 30, "memory": 20}, {DSHARES: 1}),
        ({"core": 200}, {DCARDS: 2}),
        ({"gpu": 4}, {DCARDS: 4}),
        ({"gpu_mem": 3}, {DSHARES: 1}),
        ({"sgpu": 2}, {DSHARES: 2}),  # halves of two cards
        ({"gpu": 2, "gpumem": 3000}, {DSHARES: 2}),
        ({"gpu_shared": 2}, {DSHARES: 2}),
        ({"cpu": "1"}, {}),
        ({"core": 0}, {}),
    ],
)
def test_whole_cards_and_shares_differ_in_every_dialect(asked: dict[str, Amount], expected: dict[str, int]) -> None:
    assert due(pod().asks(**asked)) == [expected]


def test_nothing_is_added_without_the_setting() -> None:
    assert due(pod().asks(gpu=1).asks(core=30, memory=20), None) == [{}, {}]


@pytest.mark.parametrize(
    ("pinned", "model"),
    [
        ("A100", "A100"),
        ("nvidia a100-PCIE", "A100"),
        ("A100-SXM4-80GB", "A100-SXM4-80GB"),  # the longest one that is meant
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("A100-SXM4-80GB,A100-PCIE", "A100"),  # whichever of them it becomes
        ("A100,T4", None),
        ("A10", None),  # an A10 may be meant
        ("V100", None),
        ("", None),
    ],
)
def test_a_pod_counts_for_a_model_if_it_accepts_only_that_one(pinned: str, model: str | None) -> None:
    built = pod().asks(gpu=2).annotated({names.ASK_MODEL: pinned})
    named = {} if model is None else {f"{DCARDS}.{model}": 2}
    assert due(built) == [{DCARDS: 2} | named]


def test_all_derived_resources_are_known_beforehand() -> None:
    assert DerivedSettings(("T4",)).resources == {DCARDS, DSHARES, f"{DCARDS}.T4", f"{DSHARES}.T4"}


steps = st.sampled_from(["asks", "init", "sidecar"])
wishes = st.sampled_from(
    [{"core": 30, "memory": 20}, {"core": 200}, {"sgpu": 2}, {"gpu_number": 3}, {"gpu_mem": 3}, {}]
)


def completed(built: PodBuilder) -> dict[str, Any]:
    asked = read_pod(built.read, DIALECTS)
    changes = [
        PatchOperation("add", (*each.place.pointer, "resources", "limits", resource), str(amount))
        for each, amounts in zip(asked, derived_due(built.read, asked, DerivedSettings()), strict=True)
        for resource, amount in amounts.items()
    ]
    changed: dict[str, Any] = apply(built.manifest, changes)
    return changed


@given(st.lists(st.tuples(steps, wishes), min_size=1, max_size=6))
def test_kubernetes_counts_derived_resources_as_a_gpu_quota_does(containers: list[tuple[str, Any]]) -> None:
    """Also with init containers and sidecars."""
    built = pod()
    for step, asked in containers:
        built = getattr(built, step)(**asked)
    cost = pod_cost(PodBuilder(built.metadata, completed(built)["spec"]).read, DerivedSettings().resources)
    charged = charge(needs_of(read_pod(built.read, DIALECTS))[1])
    wanted = {DCARDS: charged.get(CARDS, 0), DSHARES: charged.get(SHARES, 0)}
    assert {name: amount.nanos // NANOS for name, amount in cost.items()} == {k: n for k, n in wanted.items() if n}
