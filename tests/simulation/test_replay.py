"""The results of fill-ups add up and are reproducible."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from extender.packing.placement import POLICIES
from simulation.replay import fill_up
from simulation.sizes import Size
from simulation.workload import ReplayWorkload

from .trace import workload

BASE = workload(nodes=16, pods=120)
each_policy = pytest.mark.parametrize("policy", POLICIES)


@each_policy
def test_all_demand_is_allocated_or_pending(policy: str) -> None:
    result = fill_up(BASE, policy, seed=42, tune=1.5)
    assert result.allocated_gpus + result.pending_gpus == pytest.approx(result.demand_gpus)
    assert sum(result.pending_by_size.values()) == result.pending_pods
    assert set(result.pending_by_size) == set(Size)
    assert 0 < result.allocated_gpus <= result.gpus
    assert result.allocated_percent == pytest.approx(100 * result.allocated_gpus / result.gpus, abs=0.01)
    assert 0 <= result.fragmented_gpus <= result.gpus - result.allocated_gpus + 0.01


@each_policy
def test_the_same_seed_gives_the_same_result(policy: str) -> None:
    assert asdict(fill_up(BASE, policy, seed=5, tune=1.3)) == asdict(fill_up(BASE, policy, seed=5, tune=1.3))


def test_without_tune_the_pods_come_as_they_are() -> None:
    result = fill_up(BASE, "fgd", seed=42, tune=0)
    assert (result.pods, result.tune) == (len(BASE.pods), 0)
    assert result == fill_up(BASE, "fgd", seed=42, tune=0)


def test_progress_goes_up_to_the_last_pod() -> None:
    progress: list[tuple[int, int]] = []
    fill_up(BASE, "binpack", seed=1, tune=0, on_progress=lambda done, of: progress.append((done, of)))
    assert progress == [(done, len(BASE.pods)) for done in range(len(BASE.pods) + 1)]


def test_more_pods_never_allocate_less() -> None:
    allocated = [
        fill_up(ReplayWorkload(BASE.nodes, BASE.pods[:count]), "spread", seed=1, tune=0).allocated_gpus
        for count in range(0, len(BASE.pods) + 1, 20)
    ]
    assert allocated == sorted(allocated) and allocated[0] == 0
