"""Every right that the chart can give, as the real helm renders it, stands in the reference with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from docs.rights import rights
from tests.docs.test_reference import rows

from .test_chart import objects

ASKING: Final = {
    "settings": {
        "evict_for_cards": True,
        "repair_quotas_at_start": True,
        "time_slicing": {"config": "gpu-operator/time-slicing"},
    }
}


def given(gated_pods: str) -> Iterator[tuple[str, str]]:
    """A resource and a verb, of every role there is."""
    made = objects({**ASKING, "removal": {"gatedPods": gated_pods}})
    roles: list[dict[str, Any]] = [item for item in made if item["kind"] in ("Role", "ClusterRole")]
    for rule in (rule for role in roles for rule in role["rules"]):
        for resource in rule.get("resources", rule.get("nonResourceURLs")):
            yield from ((resource, verb) for verb in rule["verbs"])


@pytest.mark.parametrize("gated_pods", ["open", "delete"])
def test_every_right_that_the_chart_can_give_has_its_row(gated_pods: str) -> None:
    shown = [(on, may.split(" or ")) for on, _, may, _ in rows(rights())]
    missing = [
        (resource, verb)
        for resource, verb in given(gated_pods)
        if not any(f"`{resource}" in on and verb in may for on, may in shown)
    ]
    assert missing == []
    assert ("pods/eviction", "create") in given(gated_pods)
