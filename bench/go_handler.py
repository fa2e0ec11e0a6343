"""The webhook beside a handler in Go that decodes the same pod and does nothing else, in interleaved rounds.

Four settings: as many calls as the server takes and 200 a second, each on a quiet machine and beside two busy loops.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import uvloop

from devcluster.build.binaries import GROUPS, program_path
from devcluster.build.builder import build, missing_programs
from devcluster.build.toolchain import installed_go
from devcluster.errors import CannotStartError
from halfcard import names

from . import reviews
from .busy import busy_loops
from .connection import post
from .figures import Figure, Part
from .load import Load, Request, drive
from .servers import Server, apart, go_server, webhook

PROGRAM: Final = "pod-handler"
A_SECOND: Final = 200
UNLIKE, ALIKE = "unlike pods", "of one template"
_TITLE: Final = "The webhook against a Go handler that only decodes the pod (k8s.io/api), on one core"
_TARGETS: Final = {(UNLIKE, False): 0.8, (UNLIKE, True): 0.9, (ALIKE, False): 0.6, (ALIKE, True): 0.75}
"""The most CPU, by pods and whether calls are paced."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How long to compare."""

    rounds: int = 7
    calls: int = 1000
    paced_calls: int = 400


@dataclass(frozen=True, slots=True)
class Setting:
    paced: bool
    loops: int

    def __str__(self) -> str:
        rate = f"{A_SECOND} calls/s" if self.paced else "saturated"
        return f"{rate}, beside {self.loops} busy loops" if self.loops else rate


SETTINGS: Final = tuple(Setting(paced, loops) for paced in (False, True) for loops in (0, 2))


@dataclass(frozen=True, slots=True)
class Turn:
    """One round: what the webhook and the handler took for the same calls."""

    webhook: Load
    handler: Load


def measure(folder: Path, size: Comparison) -> Part:
    """Compares; a part without figures says why there is nothing to compare with."""
    if (why := _why_not()) is not None:
        return Part(_TITLE, (), [why])
    with webhook(folder) as judging, go_server(folder, program_path(PROGRAM)) as handler:
        return compare(judging, handler, size)


def _why_not() -> str | None:
    """Builds the handler where that is possible; returns why there is none."""
    if not missing_programs(GROUPS[PROGRAM]):
        return None
    command = f"python -m devcluster.build {PROGRAM}"
    if installed_go() is None:
        return f"Not measured, since the handler is not built: `{command}` builds it, and installs Go if needed."
    try:
        build(PROGRAM)
    except CannotStartError as error:
        return f"Not measured, since the handler cannot be built: {str(error).splitlines()[0]}"
    return None


def compare(judging: Server, handler: Server, size: Comparison, settings: Sequence[Setting] = SETTINGS) -> Part:
    """Compares the webhook with any server that allows these pods."""
    with apart(judging, handler):
        figures: list[Figure] = []
        for setting in settings:
            with busy_loops(setting.loops):
                turns = uvloop.run(_rounds(judging, handler, setting, size=size))
            figures += [each for pods, taken in turns.items() for each in figures_of(pods, setting, taken)]
            print(f"  {PROGRAM}: {setting}", file=sys.stderr)
    notes = [f"Medians of {size.rounds} rounds in turns, each of both servers; calls to {names.MUTATE_PODS_PATH}."]
    return Part(_TITLE, figures, notes)


async def _rounds(
    judging: Server, handler: Server, setting: Setting, *, size: Comparison
) -> Mapping[str, Sequence[Turn]]:
    request = pod_request()
    kinds = {UNLIKE: partial(reviews.unlike, request), ALIKE: partial(reviews.numbered, request)}
    taken: dict[str, list[Turn]] = {pods: [] for pods in kinds}
    for number in range(size.rounds + 1):
        for pods, each in kinds.items():
            turn = await _turn(judging, handler, each, setting=setting, size=size, number=number)
            if number:  # the first round only warms up
                taken[pods].append(turn)
    return taken


def pod_request() -> bytes:
    return post(names.MUTATE_PODS_PATH, reviews.body(reviews.pod_review(reviews.pod())))


async def _turn(
    judging: Server, handler: Server, request: Request, *, setting: Setting, size: Comparison, number: int
) -> Turn:
    """Each server goes first in every other round."""
    calls = size.paced_calls if setting.paced else size.calls
    pace, first = A_SECOND if setting.paced else None, number * calls
    loads = {}
    for server in (judging, handler) if number % 2 else (handler, judging):
        loads[server] = await drive(server, request, calls, first=first, a_second=pace)
    return Turn(loads[judging], loads[handler])


def figures_of(pods: str, setting: Setting, turns: Sequence[Turn]) -> list[Figure]:
    cpu = median(each.webhook.cpu_s / each.handler.cpu_s for each in turns)
    p99 = median(each.webhook.at(0.99) / each.handler.at(0.99) for each in turns)
    calls = len(turns[0].handler.taken)
    return [
        Figure(f"{pods}, {setting}: CPU", cpu, "x", _TARGETS[pods, setting.paced]),
        Figure("  its CPU per 1,000 calls", median(each.webhook.cpu_s for each in turns) / calls * 1000, "s", None, 3),
        Figure("  p99", p99, "x", 1.0),
    ]
