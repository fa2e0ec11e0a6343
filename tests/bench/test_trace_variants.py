"""Further workloads of a trace's family are what their names say."""

from __future__ import annotations

import pytest

from bench.trace_variants import VARIANTS, cpu, gpushare, gpuspec, multigpu
from simulation.workload import TracePod, milli_of

from ..simulation.trace import workload

PODS = [pod for pod in workload(pods=2000).pods if not pod.demand.wanted.narrows]


def part(pods: list[TracePod], wanted: list[TracePod]) -> float:
    return milli_of(wanted) / milli_of(pods)


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_shares_make_up_their_part_of_the_demand(share: float) -> None:
    pods = gpushare(PODS, share)
    assert part(pods, [pod for pod in pods if 0 < pod.milli < 1000]) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_pods_with_several_cards_make_up_their_part_of_the_demand(share: float) -> None:
    pods = multigpu(PODS, share)
    assert part(pods, [pod for pod in pods if pod.milli > 1000]) == pytest.approx(share, abs=0.03)


def test_the_given_part_of_pods_requests_a_model() -> None:
    using = [pod for pod in gpuspec(PODS, 0.33) if pod.milli]
    assert len([pod for pod in using if pod.demand.wanted.models]) / len(using) == pytest.approx(0.33, abs=0.05)


def test_each_pod_requests_more_cpu_in_whole_cores() -> None:
    asked = [
        (before.demand.cpu_milli, after.demand.cpu_milli) for before, after in zip(PODS, cpu(PODS, 1.3), strict=True)
    ]
    assert set(asked) == {(1000, 1000), (4000, 5000), (9000, 11000)}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_reproducible_and_its_pod_names_are_unique(name: str) -> None:
    pods = VARIANTS[name](PODS)
    assert pods == VARIANTS[name](PODS)
    assert len({pod.name for pod in pods}) == len(pods)
    assert milli_of(pods) == pytest.approx(milli_of(PODS), rel=0.05)
