"""Answers to kubelet are counted, and refusals are logged."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from deviceplugin.allocate.metered_allocator import MeteredAllocator
from deviceplugin.kubelet.messages import Granted, RefusedError
from deviceplugin.metrics import AgentMetrics
from serving.log import Log

CORE = "tencent.com/vcuda-core"


class StubAllocator:
    """Fails in the operations that a test names."""

    def __init__(self, failing: Exception | None) -> None:
        self.failing = failing

    def allocate(self, resource: str, ids: Sequence[str]) -> Granted:
        if self.failing:
            raise self.failing
        return Granted(cdi=(f"{resource}:{len(ids)}",))

    async def prestart(self, resource: str, ids: Sequence[str]) -> None:
        self.allocate(resource, ids)


class Case:
    def __init__(self, failing: Exception | None = None) -> None:
        self.registry, self.lines = CollectorRegistry(), io.StringIO()
        self.allocator = MeteredAllocator(
            StubAllocator(failing), AgentMetrics(self.registry, is_made_up=False), Log(stream=self.lines)
        )

    def answers(self, call: str, outcome: str) -> float | None:
        return self.registry.get_sample_value("halfcard_agent_answers_total", {"call": call, "outcome": outcome})

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines.getvalue().splitlines()]


async def test_an_answer_is_passed_on_and_counted() -> None:
    case = Case()
    assert case.allocator.allocate(CORE, ["hc-0"]) == Granted(cdi=(f"{CORE}:1",))
    (await case.allocator.prestart(CORE, ["hc-0"]))
    assert (case.answers("allocate", "ok"), case.answers("prestart", "ok")) == (1, 1)
    assert case.logged() == []


@pytest.mark.parametrize(
    ("failing", "outcome", "event", "field"),
    [(RefusedError("no card"), "refused", "refused", "why"), (KeyError("no card"), "bug", "bug", "trace")],
)
async def test_a_refusal_is_logged_once_with_its_reason(
    failing: Exception, outcome: str, event: str, field: str
) -> None:
    case = Case(failing)
    with pytest.raises(type(failing)):
        (await case.allocator.prestart(CORE, ["hc-0"]))
    assert case.answers("prestart", outcome) == 1
    (line,) = case.logged()
    assert (line["event"], line["call"], line["resource"]) == (event, "prestart", CORE)
    assert "no card" in line[field]
