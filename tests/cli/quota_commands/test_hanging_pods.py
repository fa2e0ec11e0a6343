"""Pods that hang in their deletion are named by `halfcard quota explain`, with whether they are charged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from cli.quota_commands.hanging_pods import overdue, sentence
from halfcard.dialects import Dialects
from tests.builders import PodBuilder, pod

GONE_BY: Final = datetime(2026, 1, 1, 0, 1, tzinfo=UTC).timestamp()
DELETED: Final[dict[str, Any]] = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
HANGS: Final = pod("p").created(**DELETED).asks(core=30, memory=20).on("n")

PODS: Final[dict[str, tuple[PodBuilder, float, list[str]]]] = {
    "it should be gone": (HANGS, GONE_BY + 1, ["p"]),
    "it may still end in time": (HANGS, GONE_BY, []),
    "it is not deleted": (pod("p").created().asks(core=30, memory=20).on("n"), GONE_BY + 1, []),
    "it has ended": (HANGS.in_phase("Failed"), GONE_BY + 1, []),
    "it has no node": (pod("p").created(**DELETED).asks(core=30, memory=20), GONE_BY + 1, []),
    "it requests no card": (pod("p").created(**DELETED).asks(cpu=1).on("n"), GONE_BY + 1, []),
}


@pytest.mark.parametrize(("built", "now_s", "found"), PODS.values(), ids=PODS)
def test_only_pods_with_cards_whose_deletion_is_overdue_hang(built: PodBuilder, now_s: float, found: list[str]) -> None:
    assert [each.name for each in overdue([built.stored], Dialects(), now_s)] == found


NODES: Final[dict[str, tuple[dict[str, Any] | None, str]]] = {
    "Ready": ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "which answers: it is charged until"),
    "silent": (
        {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        "does not answer: it is not charged",
    ),
    "gone": ({}, "does not answer: it is not charged; delete it by force if"),
    "not for this user": (None, "it is charged if that node answers"),
}


@pytest.mark.parametrize(("node", "words"), NODES.values(), ids=NODES)
def test_the_sentence_says_whether_the_pod_is_charged(node: dict[str, Any] | None, words: str) -> None:
    (hanging,) = overdue([HANGS.stored], Dialects(), GONE_BY + 1)
    assert sentence(hanging, node).startswith("team/p hangs in its deletion on node n")
    assert words in sentence(hanging, node)
