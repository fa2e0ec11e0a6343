"""Simulates pods that come and go: which are rejected when the cluster is nearly full.

Arrivals are a Poisson process, lifetimes are exponential with mean 1, and a pod that finds no room is dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import log
from typing import Final

from extender.packing.placement import POLICIES
from simulation.go_random import GoRandom
from simulation.replay import OnProgress, ignore_progress
from simulation.simulated_cluster import SimulatedCluster, SimulatedPod
from simulation.sizes import Size, size_of
from simulation.workload import ReplayWorkload, TracePod, milli_of

from .go_float64 import float64

_SETTLING: Final = 3.0
"""Lifetimes from an empty cluster until rejected pods are counted."""

_COUNTED: Final = 3.0


@dataclass(slots=True)
class Rejections:
    """Demand and rejected demand in thousandths of cards, by size."""

    asked: defaultdict[Size, int] = field(default_factory=lambda: defaultdict(int))
    rejected: defaultdict[Size, int] = field(default_factory=lambda: defaultdict(int))

    def note(self, pod: TracePod, *, is_rejected: bool) -> None:
        size = size_of(pod)
        self.asked[size] += pod.milli
        self.rejected[size] += pod.milli if is_rejected else 0

    def percent(self, *sizes: Size) -> float:
        """The rejected part of the demand of these sizes, or of all."""
        asked, rejected = (sum(each[size] for size in sizes or Size) for each in (self.asked, self.rejected))
        return 100 * rejected / asked if asked else 0.0

    def by_size(self) -> Mapping[str, float]:
        return {str(size): self.percent(size) for size in Size if self.asked[size]}


class _Arrivals:
    """Draws when the next pod comes, which pod it is, and how long it stays."""

    def __init__(self, workload: ReplayWorkload, load: float, random: GoRandom) -> None:
        self._pods = workload.pods
        self._random = random
        self.per_lifetime = load * workload.capacity_milli * len(workload.pods) / milli_of(workload.pods)

    def pause(self) -> float:
        return self.life() / self.per_lifetime

    def life(self) -> float:
        return -log(1 - float64(self._random))

    def pod(self) -> TracePod:
        return self._pods[self._random.intn(len(self._pods))]


def churn(
    workload: ReplayWorkload, policy: str, *, seed: int, load: float, on_progress: OnProgress = ignore_progress
) -> Rejections:
    """Simulates; `load` is the demand of the pods that would run at any time, relative to the cards."""
    random = GoRandom(seed)
    nodes = [workload.nodes[at] for at in random.perm(len(workload.nodes))]
    cluster = SimulatedCluster(nodes, POLICIES[policy](workload.mix, workload.fleet))
    arrivals = _Arrivals(workload, load, random)
    rejections, departures, now = Rejections(), _Departures(cluster), 0.0
    expected = round(arrivals.per_lifetime * (_SETTLING + _COUNTED))
    for number in range(expected):
        on_progress(number, expected)
        now += arrivals.pause()
        departures.until(now)
        pod, life = arrivals.pod(), arrivals.life()
        placed = cluster.arrive(pod.demand)
        if placed is not None:
            departures.at(now + life, placed)
        if now > _SETTLING:
            rejections.note(pod, is_rejected=placed is None)
    return rejections


class _Departures:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._order = count()
        self._placed: list[tuple[float, int, SimulatedPod]] = []

    def at(self, time: float, placed: SimulatedPod) -> None:
        heappush(self._placed, (time, next(self._order), placed))

    def until(self, now: float) -> None:
        while self._placed and self._placed[0][0] <= now:
            self._cluster.leave(heappop(self._placed)[2])
