"""`halfcard simulate`: replays a workload with the placement of the live extender, and reports the result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from extender.packing.placement import POLICIES
from halfcard.exit_codes import EXIT_OK
from simulation.replay import Result, fill_up
from simulation.sizes import Size
from simulation.workload import ReplayWorkload, milli_of

from .inputs.simulation_inputs import NoWorkloadError, read_workload
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen, counted

_SEED: Final = 42
_TUNE: Final = 1.3
_MOST_TUNE: Final = 10.0
_BETWEEN_SIGNS_OF_LIFE: Final = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a .csv table of an openb trace, a manifest, a dump, or a folder of them"
    parser.add_argument("--nodes", type=Path, required=True, metavar="F", help=what)
    parser.add_argument("--pods", type=Path, required=True, metavar="F", help="likewise")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--policy", choices=tuple(POLICIES), default="default", help="default: %(default)s")
    choice.add_argument("--compare", action="store_true", help="all policies side by side")
    parser.add_argument(
        "--seed", type=int, default=_SEED, metavar="N", help="of the order of pods and nodes (default: %(default)s)"
    )
    parser.add_argument(
        "--tune",
        type=_tune,
        default=_TUNE,
        metavar="R",
        help="draw pods until they request R times the cards; 0: every pod once, in order (default: %(default)s)",
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings, for manifests")
    add_output_argument(parser)


def _tune(text: str) -> float:
    try:
        tune = float(text)
    except ValueError:
        tune = -1.0
    if not 0 <= tune <= _MOST_TUNE:
        raise argparse.ArgumentTypeError(f'got "{text[:40]}"; use a number from 0 to {_MOST_TUNE:g}, such as 1.3')
    return tune


def run(arguments: argparse.Namespace) -> int:
    workload, left_out = read_workload(arguments.nodes, arguments.pods, arguments.settings)
    _check(workload, arguments)
    errors = Screen.on(sys.stderr)
    for why in left_out:
        errors.wrapped(f"Warning: {why}", indent="", hanging="  ", colour=Colour.YELLOW)
    policies = tuple(POLICIES) if arguments.compare else (arguments.policy,)
    results = [
        fill_up(workload, policy, seed=arguments.seed, tune=arguments.tune, on_progress=ReplayProgress(errors, policy))
        for policy in policies
    ]
    if arguments.output != TEXT:
        shown = [asdict(result) for result in results]
        print_document(arguments.output, shown if arguments.compare else shown[0])
    else:
        _print(Screen.on(sys.stdout), results)
    return EXIT_OK


def _check(workload: ReplayWorkload, arguments: argparse.Namespace) -> None:
    if not workload.capacity_milli:
        raise NoWorkloadError(f"{arguments.nodes}: it has no node with a GPU; a replay needs at least one")
    if arguments.tune and not milli_of(workload.pods):
        raise NoWorkloadError(f"{arguments.pods}: no pod in it requests a GPU, so none can be drawn; use --tune 0")


class ReplayProgress:
    """The progress of a replay, in one line that is overwritten on a terminal."""

    def __init__(self, screen: Screen, policy: str) -> None:
        self._screen = screen
        self._policy = policy

    def __call__(self, done: int, of: int) -> None:
        if not self._screen.is_terminal or (done < of and done % _BETWEEN_SIGNS_OF_LIFE):
            return
        text = "" if done == of else f"{self._policy}: {done:,} of {of:,} pods"
        self._screen.stream.write(f"\r\x1b[K{text}")
        self._screen.stream.flush()


def _print(screen: Screen, results: Sequence[Result]) -> None:
    first = results[0]
    drawn = f" (drawn by seed {first.seed} until {first.tune:g} times the GPUs)" if first.tune else ""
    screen.line(f"{counted(first.nodes, 'node')}, {counted(first.gpus, 'GPU')}")
    screen.line(f"{counted(first.pods, 'pod')}, requesting {first.demand_gpus:,.2f} GPUs{drawn}")
    screen.line()
    screen.headed_table(list(_rows(results)), right=range(1, 11))
    screen.line()
    screen.line(screen.paint("FRAGMENTED: idle GPUs that pods of this workload cannot use where they are.", Colour.DIM))


_HEADS: Final = {
    Size.NONE: "NO CARD",
    Size.PART: "PART",
    Size.ONE: "1 CARD",
    Size.SEVERAL: "2-7",
    Size.MANY: "8+",
}


def _rows(results: Iterable[Result]) -> Iterator[tuple[str, ...]]:
    yield "POLICY", "ALLOCATED", "%", "IDLE", "FRAGMENTED", "PENDING", *_HEADS.values()
    for each in results:
        amounts = each.allocated_gpus, each.allocated_percent, each.gpus - each.allocated_gpus, each.fragmented_gpus
        waiting = [each.pending_pods, *(each.pending_by_size[size] for size in _HEADS)]
        yield each.policy, *(f"{amount:,.2f}" for amount in amounts), *(f"{count:,}" for count in waiting)
