"""Every right in the rendered chart is in the reference with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from docs.rights import rights
from tests.docs.test_reference import rows

from .test_chart import objects

ALL_RIGHTS: Final = {
    "settings": {
        "evict_for_cards": True,
        "evict_for_misuse": True,
        "repair_quotas_at_start": True,
        "time_slicing": {"config": "gpu-operator/time-slicing"},
    }
}


def granted() -> Iterator[tuple[str, str]]:
    """Yields each resource and verb of all roles."""
    rendered = objects(ALL_RIGHTS)
    roles: list[dict[str, Any]] = [item for item in rendered if item["kind"] in ("Role", "ClusterRole")]
    for rule in (rule for role in roles for rule in role["rules"]):
        for resource in rule.get("resources", rule.get("nonResourceURLs")):
            yield from ((resource, verb) for verb in rule["verbs"])


def test_every_right_that_the_chart_can_give_has_its_row() -> None:
    shown = [(resources, verbs) for resources, _, verbs, _ in rows(rights())]
    missing = [
        (resource, verb)
        for resource, verb in granted()
        if not any(f"`{resource}" in resources and verb == verbs for resources, verbs in shown)
    ]
    assert missing == []
    assert ("pods/eviction", "create") in granted()
