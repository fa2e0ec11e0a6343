"""Simulated churn: which pods are rejected, and that all policies get the same arrivals."""

from __future__ import annotations

import pytest

from bench.simulated_churn import churn
from simulation.sizes import Size
from simulation.workload import ReplayWorkload

from ..simulation.trace import workload

BASE = workload(nodes=8, pods=120)


def test_no_pod_is_refused_far_below_capacity() -> None:
    small = ReplayWorkload(
        BASE.nodes, tuple(pod for pod in BASE.pods if pod.milli <= 1000 and not pod.demand.wanted.narrows)
    )
    assert churn(small, "default", seed=1, load=0.3).percent() == 0


def test_many_pods_are_refused_far_above_capacity() -> None:
    turned = churn(BASE, "fgd", seed=1, load=3.0)
    assert turned.percent() > 50
    assert turned.percent(Size.MANY) > turned.percent(Size.PART)
    assert set(turned.by_size()) <= set(Size)


def test_every_policy_gets_the_same_arrivals() -> None:
    one, other = churn(BASE, "fgd", seed=3, load=1.0), churn(BASE, "spread", seed=3, load=1.0)
    assert one.asked == other.asked


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_gives_the_same_result(seed: int) -> None:
    assert churn(BASE, "default", seed=seed, load=1.0) == churn(BASE, "default", seed=seed, load=1.0)
