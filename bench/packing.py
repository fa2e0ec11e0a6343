"""`python -m bench.packing`: how full a cluster becomes, and which pods are refused, compared with a published policy.

The pods and nodes are those of the public openb trace and further workloads of its family. A fill-up is the mean of
several seeds; under churn pods come and go, the same ones for each policy.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from time import monotonic
from typing import Final

from bench.simulated_churn import churn
from bench.trace_variants import VARIANTS
from cli.inputs.simulation_inputs import NoWorkloadError, read_workload
from halfcard.columns import columns
from halfcard.exit_codes import EXIT_USAGE
from simulation.replay import fill_up
from simulation.sizes import Size
from simulation.workload import ReplayWorkload

from .figures import Figure, Part, write_json
from .servers import ROOT

_OUT: Final = ROOT / "bench" / "out" / "packing.json"
_DATA: Final = "HALFCARD_OPENB"
_NODES: Final = "openb_node_list_gpu_node.csv"
_PODS: Final = "openb_pod_list_{}.csv"
_BASE: Final = "default"

PUBLISHED: Final = {"default": 95.39, "gpushare40": 94.15, "multigpu20": 95.65}
"""What FGD allocates, in per cent: the mean of seeds 42 to 51."""

THEIRS: Final = "fgd"
OURS: Final = "default"
TUNE: Final = 1.3
FIRST_SEED: Final = 42
PUBLISHED_SEEDS: Final = 10

MOST_OFF: Final = 0.15
MOST_LEFT: Final = 0.9
MOST_LEFT_ON_AVERAGE: Final = 0.8
MOST_MORE_TURNED_AWAY: Final = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The measured runs; variants are filled with fewer seeds."""

    seeds: int = PUBLISHED_SEEDS
    variant_seeds: int = 2
    variants: tuple[str, ...] = tuple(VARIANTS)
    churned: tuple[str, ...] = (*PUBLISHED, "multigpu50")
    loads: tuple[float, ...] = (0.95, 1.05)

    def jobs(self) -> Iterator[Job]:
        """All runs, the long ones first."""
        for policy in (OURS, THEIRS):
            for workload in self.churned:
                yield from (Job(workload, policy, FIRST_SEED, load) for load in self.loads)
        for workload in (*PUBLISHED, *self.variants):
            seeds = self.seeds if workload in PUBLISHED else min(self.seeds, self.variant_seeds)
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                yield from (Job(workload, policy, seed) for policy in (OURS, THEIRS))


QUICK: Final = Plan(seeds=1, variants=("gpushare100", "cpu x2"), churned=("default",), loads=(0.95,))


@dataclass(frozen=True, slots=True)
class Job:
    """`load` is that under churn; None for a fill-up."""

    workload: str
    policy: str
    seed: int
    load: float | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Per cent: what a fill-up allocated; what churn rejected of all demand, and by size."""

    allocated: float = 0.0
    rejected: float = 0.0
    by_size: tuple[float, ...] = ()


_SIZES: Final = (Size.PART, Size.ONE, Size.SEVERAL, Size.MANY)

Measured = dict[Job, Done]


def do(data: Path, job: Job) -> Done:
    workload = workload_of(data, job.workload)
    if job.load is None:
        return Done(allocated=fill_up(workload, job.policy, seed=job.seed, tune=TUNE).allocated_percent)
    turned = churn(workload, job.policy, seed=job.seed, load=job.load)
    return Done(rejected=turned.percent(), by_size=tuple([turned.percent(size) for size in _SIZES]))


@cache
def workload_of(data: Path, name: str) -> ReplayWorkload:
    variant = VARIANTS.get(name)
    base = read_workload(data / _NODES, data / _PODS.format(_BASE if variant else name)).workload
    return ReplayWorkload(base.nodes, tuple(variant(base.pods))) if variant else base


def measure(data: Path, jobs: Sequence[Job], processes: int, on_done: Callable[[int], None]) -> Measured:
    with ProcessPoolExecutor(processes) as pool:
        running = {pool.submit(do, data, job): job for job in jobs}
        found: Measured = {}
        for future in as_completed(running):
            found[running[future]] = future.result()
            on_done(len(found))
    return found


# --- what it comes to -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filled:
    """The average allocation of both policies for one workload, in per cent."""

    workload: str
    theirs: float
    ours: float
    gpus: int

    @property
    def left(self) -> float:
        """The ratio of what our policy leaves unallocated to what the other leaves."""
        return (100 - self.ours) / (100 - self.theirs) if self.theirs < 100 else 1.0


def filled(measured: Measured, gpus: int) -> list[Filled]:
    names = dict.fromkeys(job.workload for job in measured if job.load is None)
    return [Filled(name, _mean(measured, name, THEIRS), _mean(measured, name, OURS), gpus) for name in names]


def _mean(measured: Measured, workload: str, policy: str) -> float:
    return mean(
        [
            done.allocated
            for job, done in measured.items()
            if (job.workload, job.policy, job.load) == (workload, policy, None)
        ]
    )


def fill_part(rows: Sequence[Filled], plan: Plan) -> Part:
    figures = [
        Figure(
            "left by default, against FGD's, on average", mean([row.left for row in rows]), "x", MOST_LEFT_ON_AVERAGE
        )
    ]
    for row in rows:
        figures += [
            Figure(f"{row.workload}: allocated by FGD", row.theirs, "%"),
            Figure(f"{row.workload}: allocated by default", row.ours, "%"),
            Figure(f"{row.workload}: left by default, against FGD's", row.left, "x", MOST_LEFT),
        ]
        if plan.seeds == PUBLISHED_SEEDS and row.workload in PUBLISHED:
            off = abs(row.theirs - PUBLISHED[row.workload])
            figures.append(Figure(f"{row.workload}: FGD against its published figure", off, "points", MOST_OFF))
    seeds = f"mean of {plan.seeds} seeds ({min(plan.seeds, plan.variant_seeds)} where nothing was published)"
    return Part(f"Fill-up to {TUNE:g} times the cards, {seeds}", figures)


def fill_table(rows: Iterable[Filled]) -> list[tuple[str, ...]]:
    heads = "WORKLOAD", "FGD %", "DEFAULT %", "FGD LEAVES", "DEFAULT LEAVES", "FEWER"
    return [heads, *[_fill_row(row) for row in rows]]


def _fill_row(row: Filled) -> tuple[str, ...]:
    theirs, ours = ((100 - allocated) / 100 * row.gpus for allocated in (row.theirs, row.ours))
    fewer = f"{100 * (1 - row.left):.1f} %"
    return row.workload, f"{row.theirs:.2f}", f"{row.ours:.2f}", f"{theirs:.1f}", f"{ours:.1f}", fewer


def churn_part(measured: Measured) -> Part:
    figures = []
    for job, theirs, ours in _churned(measured):
        what = f"{job.workload} at {100 * (job.load or 0):g} %"
        figures += [
            Figure(f"{what}: rejected by FGD", theirs.rejected, "%"),
            Figure(f"{what}: rejected by default", ours.rejected, "%"),
            Figure(f"{what}: more than FGD", ours.rejected - theirs.rejected, "points", MOST_MORE_TURNED_AWAY),
        ]
    return Part("Churn: rejected demand", figures)


def churn_table(measured: Measured) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("WORKLOAD", "LOAD", "POLICY", "TURNED AWAY", *[f"OF {size.upper()}" for size in ("part", "1", "2-7", "8+")])
    ]
    for job, theirs, ours in _churned(measured):
        for policy, done in ((THEIRS, theirs), (OURS, ours)):
            amounts = [f"{percent:.2f} %" for percent in (done.rejected, *done.by_size)]
            rows.append((job.workload, f"{100 * (job.load or 0):g} %", policy, *amounts))
    return rows


def _churned(measured: Measured) -> Iterator[tuple[Job, Done, Done]]:
    for job, ours in measured.items():
        if job.load is not None and job.policy == OURS:
            yield job, measured[Job(job.workload, THEIRS, job.seed, job.load)], ours


# --- the program ------------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    plan = QUICK if arguments.quick else Plan(seeds=arguments.seeds)
    try:
        gpus = workload_of(arguments.data, _BASE).capacity_milli // 1000
    except NoWorkloadError as error:
        print(
            f"python -m bench.packing: {error}\nname the folder of the openb trace with --data or ${_DATA}",
            file=sys.stderr,
        )
        return EXIT_USAGE
    jobs = list(plan.jobs())
    found = measure(arguments.data, jobs, arguments.processes, Progress(len(jobs)))
    measured = {job: found[job] for job in jobs}
    rows = filled(measured, gpus)
    parts = [fill_part(rows, plan), churn_part(measured)]
    _print(parts, [fill_table(rows), churn_table(measured)])
    write_json(parts, arguments.json)
    print(f"\nwritten to {arguments.json}", file=sys.stderr)
    return 0


def _print(parts: Sequence[Part], tables: Sequence[Sequence[tuple[str, ...]]]) -> None:
    for part, table in zip(parts, tables, strict=True):
        left = (0,) if part is parts[0] else (0, 2)
        lines = columns(table, right=[at for at in range(len(table[0])) if at not in left])
        print("\n".join((part.title, "", *lines, "")))
        aims = [figure for figure in part.figures if figure.at_most is not None]
        missed = [figure for figure in aims if figure.verdict != "met"]
        print(f"{len(aims) - len(missed)} of {len(aims)} targets met")
        print("\n".join(figure.line() for figure in missed), end="\n" if missed else "")
        print()


class Progress:
    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._since = monotonic()

    def __call__(self, done: int) -> None:
        end = "\r" if sys.stderr.isatty() and done < self._jobs else "\n"
        if end == "\r" or done % 10 == 0 or done == self._jobs:
            print(f"  {done} of {self._jobs} replays, {monotonic() - self._since:.0f} s", file=sys.stderr, end=end)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.packing", description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get(_DATA, "data/openb")),
        metavar="DIR",
        help=f"of the openb trace (default: ${_DATA}, or data/openb)",
    )
    parser.add_argument(
        "--seeds", type=int, choices=range(1, 101), default=PUBLISHED_SEEDS, metavar="N", help="default %(default)s"
    )
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="default %(default)s")
    parser.add_argument("--json", type=Path, default=_OUT, metavar="FILE", help="default %(default)s")
    parser.add_argument("--quick", action="store_true", help="about a minute, one seed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
