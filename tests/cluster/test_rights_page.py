"""Every right in the rendered chart is in the reference with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from docs.rights import rights
from tests.docs.test_reference import rows

from .test_chart import objects

ALL_RIGHTS: Final = {
    "settings": {
        "evict_for_cards": True,
        "repair_quotas_at_start": True,
        "time_slicing": {"config": "gpu-operator/time-slicing"},
    }
}


def granted(gated_pods: str) -> Iterator[tuple[str, str]]:
    """Yields each resource and verb of all roles."""
    rendered = objects({**ALL_RIGHTS, "removal": {"gatedPods": gated_pods}})
    roles: list[dict[str, Any]] = [item for item in rendered if item["kind"] in ("Role", "ClusterRole")]
    for rule in (rule for role in roles for rule in role["rules"]):
        for resource in rule.get("resources", rule.get("nonResourceURLs")):
            yield from ((resource, verb) for verb in rule["verbs"])


@pytest.mark.parametrize("gated_pods", ["open", "delete"])
def test_every_right_that_the_chart_can_give_has_its_row(gated_pods: str) -> None:
    shown = [(resources, verbs.split(" or ")) for resources, _, verbs, _ in rows(rights())]
    missing = [
        (resource, verb)
        for resource, verb in granted(gated_pods)
        if not any(f"`{resource}" in resources and verb in verbs for resources, verbs in shown)
    ]
    assert missing == []
    assert ("pods/eviction", "create") in granted(gated_pods)
