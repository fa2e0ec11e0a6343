"""What a call costs through TLS, beside the same server answering a constant, in interleaved rounds.

Two servers run on one core and take turns; a round calls each of them the same number of times, so that
other load on the machine affects all alike. The medians over the rounds are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import uvloop

from halfcard import names

from . import reviews
from .connection import post
from .figures import Figure, Part
from .load import CONNECTIONS, Request, drive
from .servers import Server, apart, floor, webhook

FLOOR, MUTATE, VALIDATE = "floor", "mutate", "validate"
_ALIKE: Final = "{}, of one template"
MOST_CPU_S: Final = 0.19
MOST_OF_FLOOR: Final = 1.8
MOST_SPREAD: Final = 3.0
_NOTES: Final = (
    "Pods are all unlike, each of another template, unless it says otherwise.",
    "Quoted, on another machine of 2 cores, CPU s per 1,000 calls: HAMi's webhook 1.36.",
    "CPU and ratios carry over between machines, times do not.",
)


@dataclass(frozen=True, slots=True)
class Rounds:
    """How long to measure."""

    rounds: int = 9
    calls: int = 2000


@dataclass(frozen=True, slots=True)
class Target:
    server: Server
    request: Request


@dataclass(frozen=True, slots=True)
class Sample:
    """One server's share of one round, for 1,000 calls."""

    cpu_s: float
    p50_ms: float
    p99_ms: float


def measure(folder: Path, size: Rounds) -> Part:
    with webhook(folder) as judging, floor(folder) as constant, apart(judging, constant) as pinned:
        mutating = post(names.MUTATE_PODS_PATH, _review(reviews.pod()))
        validating = post(names.VALIDATE_PODS_PATH, _review(reviews.accepted_pod()))
        targets = {FLOOR: Target(constant, partial(reviews.unlike, mutating))}
        for name, request in ((MUTATE, mutating), (VALIDATE, validating)):
            targets[name] = Target(judging, partial(reviews.unlike, request))
            targets[_ALIKE.format(name)] = Target(judging, partial(reviews.numbered, request))
        samples = uvloop.run(_rounds(targets, size))
    kilobytes = len(_review(reviews.pod())) / 1000
    where = "on one core" if pinned else "on any core (this machine cannot pin)"
    title = (
        f"Through TLS {where}, {CONNECTIONS} kept-alive connections, a pod review of {kilobytes:.1f} kB\n"
        f"  (medians of {size.rounds} interleaved rounds of {size.calls:,} calls each)"
    )
    return Part(title, _figures(samples), _NOTES)


def _review(pod: reviews.Json) -> bytes:
    return reviews.body(reviews.pod_review(pod))


async def _rounds(targets: Mapping[str, Target], size: Rounds) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {name: [] for name in targets}
    for number in range(size.rounds + 1):
        for name, target in targets.items():
            sample = await _sample(target, size.calls, first=number * size.calls)
            if number:  # the first round only warms up
                samples[name].append(sample)
        print(f"  throughput: round {number} of {size.rounds}", file=sys.stderr)
    return samples


async def _sample(target: Target, calls: int, *, first: int) -> Sample:
    load = await drive(target.server, target.request, calls, first=first)
    return Sample(load.cpu_s / calls * 1000, load.at(0.5) * 1000, load.at(0.99) * 1000)


def _figures(samples: Mapping[str, list[Sample]]) -> list[Figure]:
    constant = samples[FLOOR]
    figures = [_cpu(FLOOR, constant, None)]
    for name in list(samples)[1:]:
        mine = samples[name]
        ratio = median(each.cpu_s / other.cpu_s for each, other in zip(mine, constant, strict=True))
        figures += [
            _cpu(name, mine, MOST_CPU_S),
            Figure(f"{name}: the same against the floor", ratio, "x", MOST_OF_FLOOR),
        ]
    for name, mine in samples.items():
        spread = median(each.p99_ms / each.p50_ms for each in mine)
        figures += [
            Figure(f"{name}: p50", median(each.p50_ms for each in mine), "ms"),
            Figure(f"{name}: p99", median(each.p99_ms for each in mine), "ms"),
            Figure(f"{name}: p99 / p50", spread, "x", None if name == FLOOR else MOST_SPREAD),
        ]
    return figures


def _cpu(name: str, samples: list[Sample], at_most: float | None) -> Figure:
    return Figure(f"{name}: CPU per 1,000 calls", median(each.cpu_s for each in samples), "s", at_most, 4)
