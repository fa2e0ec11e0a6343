"""The two kinds of quota say the same in the same words, and what they allow is what is counted."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml

from halfcard import names
from halfcard.quota.charge import COUNTED
from halfcard.quota.ledger import Ledger
from quota.reporting.status import status_of

from .rendered import CHART

_KINDS: Final = CHART / "kinds"


def crd(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((_KINDS / f"{kind.lower()}.yaml").read_text())
    return found


def properties(kind: str) -> dict[str, Any]:
    (version,) = crd(kind)["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]
    return found


OWN, SHARED = properties(names.GPU_QUOTA), properties(names.CLUSTER_GPU_QUOTA)


@pytest.mark.parametrize(
    ("kind", "plural"), [(names.GPU_QUOTA, names.GPU_QUOTAS), (names.CLUSTER_GPU_QUOTA, names.CLUSTER_GPU_QUOTAS)]
)
def test_a_kind_has_the_name_that_the_code_uses(kind: str, plural: str) -> None:
    spec = crd(kind)["spec"]
    assert (spec["names"]["kind"], spec["names"]["plural"]) == (kind, plural)
    assert f"/apis/{spec['group']}/{spec['versions'][0]['name']}" == names.QUOTA_API


def test_both_kinds_have_the_same_limits_and_the_shared_one_has_namespaces() -> None:
    own, shared = OWN["spec"]["properties"], dict(SHARED["spec"]["properties"])
    assert shared.keys() - own.keys() == {"namespaces", "asDefault"}
    del shared["namespaces"], shared["asDefault"]
    assert own == shared
    assert OWN["status"] == SHARED["status"]


def test_limits_per_label_have_the_amounts_of_hard() -> None:
    hard, each = OWN["spec"]["properties"]["hard"], OWN["spec"]["properties"]["perLabel"]["properties"]["hard"]
    assert hard["properties"] == each["properties"]
    assert set(hard["properties"]) == set(COUNTED)


@pytest.mark.parametrize("by", ["byModel", "byPool"])
def test_limits_by_model_and_pool_have_the_amounts_of_hard(by: str) -> None:
    hard, each = OWN["spec"]["properties"]["hard"], OWN["spec"]["properties"][by]["additionalProperties"]
    assert hard["properties"] == each["properties"]


def test_a_status_has_the_fields_that_the_api_server_keeps() -> None:
    assert status_of(Ledger({})).keys() == OWN["status"]["properties"].keys()


@pytest.mark.parametrize("limit", ["borrowingLimit", "lendingLimit"])
def test_loans_have_the_amounts_of_hard(limit: str) -> None:
    hard, borrowing = OWN["spec"]["properties"]["hard"], OWN["spec"]["properties"]["borrowing"]["properties"]
    assert hard["properties"] == borrowing[limit]["properties"]
