"""`python -m bench.fuzz`: malformed requests to the real webhook or extender. No 5xx, no bug, no hang, memory flat, and
never more of it than the chart allows.

A violation prints the seed, the number and the body, and ends with 1: `--seed S --first N --count 1` sends it again.
The extender answers everything with status 200: its bugs are in its log.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import uvloop
import yaml

from halfcard.quantity import Quantity

from .connection import Answer, Connection, Dropped
from .load import CONNECTIONS
from .malformed import Case, Valid, case
from .malformed_calls import SIZE, calls
from .servers import ROOT, Server, extender, scratch, webhook

MOST_WAIT_S: Final = 5.0
MOST_GROWTH_MB: Final = 15.0
_WARM_UP: Final = 0.2
_SHOWN_BYTES: Final = 4000
_PROGRESS_EVERY: Final = 5000
_BUG: Final = b'"bug"'


@dataclass(frozen=True, slots=True)
class Target:
    """A target of the fuzzer: how it is started, where its log is, and its valid bodies; by default reviews.

    Attributes:
        value: of the chart, with the memory limit of the process.
    """

    start: Callable[[Path], AbstractContextManager[Server]]
    log: str
    value: str
    valid: Valid = ()


_TARGETS: Final = {
    "webhook": Target(webhook, "log", "admission"),
    "extender": Target(lambda folder: extender(folder, SIZE), "extender.log", "extender", calls()),
}


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    first: int
    count: int
    of: str = "webhook"

    def case(self, number: int) -> Case:
        return case(self.seed, number, _TARGETS[self.of].valid)


@dataclass(slots=True)
class Tally:
    """The results so far."""

    statuses: Counter[int] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    warm_mb: float = 0.0

    @property
    def done(self) -> int:
        return self.statuses.total()


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    plan = Plan(arguments.seed, arguments.first, arguments.count, arguments.of)
    with scratch() as folder:
        return run(plan, folder)


def run(plan: Plan, folder: Path) -> int:
    target = _TARGETS[plan.of]
    with target.start(folder) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (memory_limit(target.value),) * 2)
        began = time.perf_counter()
        tally = Tally()
        uvloop.run(_fuzz(server, plan, tally))
        tally.violations += [*_memory_violations(server, tally), *_bugs(folder / target.log)]
        seconds = time.perf_counter() - began
        print(_summary(plan, tally, seconds, resident_mb=server.resident_mb()))
    for violation in tally.violations:
        print(violation)
    return 1 if tally.violations else 0


def memory_limit(value: str) -> int:
    """Returns the bytes that a process may have, by the chart's values."""
    values = yaml.safe_load((ROOT / "deploy/chart/halfcard/values.yaml").read_text(encoding="utf-8"))
    return Quantity.parse(values[value]["resources"]["limits"]["memory"]).as_int() or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default %(default)s")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--of", choices=_TARGETS, default="webhook", help="default %(default)s")
    return parser


async def _fuzz(server: Server, plan: Plan, tally: Tally) -> None:
    numbers = iter(range(plan.first, plan.first + plan.count))
    await asyncio.gather(*(_send(server, plan, numbers, tally=tally) for _ in range(CONNECTIONS)))


async def _send(server: Server, plan: Plan, numbers: Iterator[int], *, tally: Tally) -> None:
    """Sends requests until the numbers run out or a violation is found."""
    connection = await Connection.open(server.port, server.tls())
    for number in numbers:
        if tally.violations:
            break
        if not connection.is_open:
            await connection.end()
            connection = await Connection.open(server.port, server.tls())
        await _send_one(server, connection, plan, number, tally=tally)
        _progress(server, plan, tally)
    await connection.end()


async def _send_one(server: Server, connection: Connection, plan: Plan, number: int, *, tally: Tally) -> None:
    sent = plan.case(number)
    try:
        async with asyncio.timeout(MOST_WAIT_S):
            answer = await connection.ask(server.addressed(sent.request()))
    except TimeoutError:
        tally.violations.append(_violation(f"no answer in {MOST_WAIT_S:g} s", plan, number, case=sent))
    except (Dropped, OSError) as error:
        tally.violations.append(_violation(f"no answer: {error}", plan, number, case=sent))
    else:
        count_answer(answer, sent, plan, number=number, tally=tally)


def count_answer(answer: Answer, sent: Case, plan: Plan, *, number: int, tally: Tally) -> None:
    tally.statuses[answer.status] += 1
    tally.slowest = max(tally.slowest, (answer.seconds, number))
    if answer.status >= 500:
        what = f"status {answer.status}: {answer.body.decode(errors='replace').strip()}"
        tally.violations.append(_violation(what, plan, number, case=sent))


def _progress(server: Server, plan: Plan, tally: Tally) -> None:
    if tally.done == int(plan.count * _WARM_UP):
        tally.warm_mb = server.resident_mb()
    if tally.done % _PROGRESS_EVERY == 0:
        print(f"  fuzz: {tally.done:,} of {plan.count:,}", file=sys.stderr)


def _violation(what: str, plan: Plan, number: int, *, case: Case) -> str:
    body = case.body if len(case.body) <= _SHOWN_BYTES else case.body[:_SHOWN_BYTES] + b"..."
    return (
        f"VIOLATION: {what}\n"
        f"  again: python -m bench.fuzz --of {plan.of} --seed {plan.seed} --first {number} --count 1\n"
        f"  {case.kind}: {case.method} {case.path} {case.content_type!r}, {len(case.body):,} bytes\n  {body!r}"
    )


def _memory_violations(server: Server, tally: Tally) -> Iterator[str]:
    growth = server.resident_mb() - tally.warm_mb
    if tally.warm_mb and growth > MOST_GROWTH_MB:
        yield f"VIOLATION: memory grew by {growth:.1f} MB after the warm-up; at most {MOST_GROWTH_MB:g} MB is flat"


def _bugs(log: Path) -> Iterator[str]:
    for line in log.read_bytes().splitlines():
        if _BUG in line:
            yield f"VIOLATION: {line.decode(errors='replace')}"


def _summary(plan: Plan, tally: Tally, seconds: float, *, resident_mb: float) -> str:
    statuses = ", ".join(f"{count:,} x {status}" for status, count in sorted(tally.statuses.items()))
    return (
        f"{tally.done:,} malformed requests to the {plan.of} in {seconds:.0f} s, seed {plan.seed}: {statuses}\n"
        f"slowest answer {tally.slowest[0] * 1000:.0f} ms (number {tally.slowest[1]}), "
        f"memory {tally.warm_mb:.1f} -> {resident_mb:.1f} MB, violations: {len(tally.violations) or 'none'}"
    )


if __name__ == "__main__":
    sys.exit(main())
