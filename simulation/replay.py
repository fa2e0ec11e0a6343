"""Fills a cluster: places pods one after the other; a pod that does not fit stays pending, and no pod ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from extender.packing.placement import POLICIES
from extender.packing.policies.fgd import FragmentationGradientDescent
from extender.packing.policies.fullness import used
from halfcard.placing.room import Room

from .simulated_cluster import SimulatedCluster
from .sizes import Size, size_of
from .workload import MILLI, ReplayWorkload, TracePod, milli_of

OnProgress = Callable[[int, int], None]
"""Called with the number of pods that are done, and of all pods."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a fill-up.

    Attributes:
        tune: the requested cards as a multiple of the existing ones; 0 for pods as given.
        fragmented_gpus: the idle amount, in cards, that the pods of the workload cannot use, on average.
        fragmented_percent: the same as a part of the idle cards.
        pending_by_size: the number of pending pods.
    """

    policy: str
    seed: int
    tune: float
    nodes: int
    gpus: int
    pods: int
    demand_gpus: float
    allocated_gpus: float
    allocated_percent: float
    fragmented_gpus: float
    fragmented_percent: float
    pending_pods: int
    pending_gpus: float
    pending_by_size: Mapping[str, int]


def ignore_progress(_done: int, _of: int) -> None:
    pass


def fill_up(
    workload: ReplayWorkload, policy: str, *, seed: int, tune: float, on_progress: OnProgress = ignore_progress
) -> Result:
    """Fills by the published method; the policy expects all pods of the workload, not those that the seed draws."""
    drawn = workload.drawn(seed, tune) if tune else workload
    cluster = SimulatedCluster(drawn.nodes, POLICIES[policy](workload.mix, workload.fleet))
    pending = place_all(cluster, drawn.pods, on_progress)
    gpus = sum(len(node.cards) for node in drawn.nodes)
    allocated = sum(sum(used(room)) for room in cluster.rooms)
    fragmented = fragmentation(workload, cluster.rooms)
    return Result(
        policy=policy,
        seed=seed,
        tune=tune,
        nodes=len(drawn.nodes),
        gpus=gpus,
        pods=len(drawn.pods),
        demand_gpus=milli_of(drawn.pods) / MILLI,
        allocated_gpus=round(allocated, 2),
        allocated_percent=_percent(allocated, gpus),
        fragmented_gpus=round(fragmented, 2),
        fragmented_percent=_percent(fragmented, gpus - allocated),
        pending_pods=len(pending),
        pending_gpus=milli_of(pending) / MILLI,
        pending_by_size=_by_size(pending),
    )


def place_all(
    cluster: SimulatedCluster, pods: Sequence[TracePod], on_progress: OnProgress = ignore_progress
) -> list[TracePod]:
    """Places the pods; returns those that do not fit."""
    pending = []
    for done, pod in enumerate(pods):
        on_progress(done, len(pods))
        if cluster.arrive(pod.demand) is None:
            pending.append(pod)
    on_progress(len(pods), len(pods))
    return pending


def fragmentation(workload: ReplayWorkload, rooms: Iterable[Room]) -> float:
    """Measures fragmentation in cards, like FGD."""
    measure = FragmentationGradientDescent(workload.mix, workload.fleet)
    return -sum(measure.value(room) for room in rooms) / MILLI


def _by_size(pods: Iterable[TracePod]) -> dict[str, int]:
    counted = Counter(size_of(pod) for pod in pods)
    return {str(size): counted[size] for size in Size}


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 2) if whole > 0 else 0.0
