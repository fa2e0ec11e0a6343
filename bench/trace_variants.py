"""More workloads derived from a trace: other proportions of the same pods, drawn with a fixed seed.

Policies are compared on them, so that none is tuned to the few published lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from simulation.go_random import GoRandom
from simulation.workload import MILLI, TracePod, milli_of

from .go_float64 import float64

_SEED: Final = 7

_MODELS: Final = (("t4",), ("t4",), ("g2",), ("g2",), ("g2",), ("g3",), ("p100",), ("v100m16", "v100m32"), ("v100m32",))
_LARGE_MODELS: Final = (("g2",), ("g3",), ("v100m32",), ("v100m16", "v100m32"))
"""Of machines with eight cards."""


def gpushare(pods: Sequence[TracePod], share: float) -> list[TracePod]:
    """Pods that use less than one card request this part of all requested cards."""
    return _balanced(pods, share, lambda pod: 0 < pod.milli < MILLI)


def multigpu(pods: Sequence[TracePod], share: float) -> list[TracePod]:
    """Pods that use several cards request this part of all requested cards."""
    return _balanced(pods, share, lambda pod: pod.milli > MILLI)


def gpuspec(pods: Sequence[TracePod], share: float) -> list[TracePod]:
    """So many of the pods that use cards require a model, with the probability of that model in the cluster."""
    random = GoRandom(_SEED)
    return [_choosy(pod, random) if pod.milli and float64(random) < share else pod for pod in pods]


def cpu(pods: Sequence[TracePod], times: float) -> list[TracePod]:
    """Multiplies the CPU of each pod, in whole cores."""
    return [
        pod._replace(demand=pod.demand._replace(cpu_milli=int(pod.demand.cpu_milli * times) // 1000 * 1000))
        for pod in pods
    ]


def _balanced(pods: Sequence[TracePod], share: float, is_one: Callable[[TracePod], bool]) -> list[TracePod]:
    """Keeps the pods without cards, and draws as many others as keep the requested cards the same."""
    random = GoRandom(_SEED)
    with_cards = [pod for pod in pods if pod.milli]
    asked = milli_of(with_cards)
    ones, others = [pod for pod in with_cards if is_one(pod)], [pod for pod in with_cards if not is_one(pod)]
    drawn = [*_drawn(ones, share * asked, random), *_drawn(others, (1 - share) * asked, random)]
    return _renamed([*[pod for pod in pods if not pod.milli], *drawn])


def _drawn(pods: Sequence[TracePod], milli: float, random: GoRandom) -> list[TracePod]:
    count = round(milli / milli_of(pods) * len(pods)) if pods else 0
    return [pods[random.intn(len(pods))] for _ in range(count)]


def _renamed(pods: Sequence[TracePod]) -> list[TracePod]:
    return [pod._replace(name=f"pod-{number:05}") for number, pod in enumerate(pods)]


def _choosy(pod: TracePod, random: GoRandom) -> TracePod:
    models = _LARGE_MODELS if pod.milli >= 4 * MILLI else _MODELS
    wanted = replace(pod.demand.wanted, models=models[random.intn(len(models))])
    return pod._replace(demand=pod.demand._replace(wanted=wanted))


VARIANTS: Final[Mapping[str, Callable[[Sequence[TracePod]], list[TracePod]]]] = {
    **{f"gpushare{share}": partial(gpushare, share=share / 100) for share in (20, 60, 80, 100)},
    **{f"multigpu{share}": partial(multigpu, share=share / 100) for share in (30, 50)},
    **{f"gpuspec{share}": partial(gpuspec, share=share / 100) for share in (10, 20, 33)},
    **{f"cpu x{times}": partial(cpu, times=times) for times in (1.3, 2)},
}
