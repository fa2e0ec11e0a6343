"""`python -m bench.extender`: how long the scheduler waits for answers, compared with the floor of the same run.

The floor is the same server that reads the same body and accepts every node: the difference is the cost of the
decision. Calls of both alternate on one connection.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from math import isqrt
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

import uvloop

from halfcard import names

from . import extender_cluster as cluster
from .connection import Answer, Connection
from .extender_cluster import Json, Size
from .extender_server import CHANGE, FLOOR_FILTER, FLOOR_PRIORITIZE, FORGET, GROW
from .figures import Figure, Part, table, write_json
from .servers import ROOT, Server, apart, extender, scratch

_OUT: Final = ROOT / "bench" / "out" / "extender.json"

MOST_WARM: Final = 2.0
MOST_FIRST: Final = 15.0
MOST_FULL: Final = 1.5
MOST_FIRST_PRIORITIZE_MS: Final = 150.0
MOST_GROWTH: Final = 1.2
MOST_HELD_MS: Final = 20.0

_KINDS: Final = cluster.kinds()
_FLOORS: Final = 60
_ORDERS: Final = 8
"""The scheduler's threads bring the nodes in another order each time."""
_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class Rounds:
    """How long to measure; turns are short, so that other load on the machine affects both sides alike."""

    turns: int = 160
    calls: int = 10
    changes: int = 60
    firsts: int = 5


class Call(NamedTuple):
    """Times in milliseconds; `cpu` is what the server used."""

    taken: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Calls of one kind, in milliseconds; a busy machine spoils `cpu`, the median of what the server used, least."""

    p50: float
    p99: float
    cpu: float


class Caller:
    """One connection that is opened again when the server has closed it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection: Connection | None = None

    async def ask(self, path: str, body: bytes) -> Answer:
        if self._connection is None or not self._connection.is_open:
            self._connection = await Connection.open(self._server.port, self._server.tls())
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Go-http-client/1.1\r\n"
            f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
        )
        answer = await self._connection.ask(head.encode() + body)
        failed = b'"Error":"' in answer.body and b'"Error":""' not in answer.body
        if answer.status != 200 or failed or answer.body == b"[]":
            raise RuntimeError(f"{path} failed: {answer.status} {answer.body[:500]!r}")
        return answer

    async def control(self, path: str, count: int = 0) -> float:
        return float(json.loads((await self.ask(path, b"%d" % count)).body) or 0)

    async def end(self) -> None:
        if self._connection is not None:
            await self._connection.end()


Before = Callable[[], Awaitable[object]]


async def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Bench:
    caller: Caller
    server: Server
    size: Size
    rounds: Rounds

    def filter_calls(self, pod: Json) -> list[bytes]:
        """The same call with the nodes in other orders."""
        named = [cluster.node_name(number) for number in range(self.size.nodes)]
        Random(7).shuffle(named)
        random = Random(8)
        return [cluster.by_name(pod, _as_threads_come(named, random)) for _ in range(_ORDERS)]

    async def prioritize_call(self, pod: Json, call: bytes) -> bytes:
        """Returns the call of prioritize that follows: with the nodes that filter returned, in that order."""
        answer = await self.caller.ask(names.FILTER_PATH, call)
        return cluster.by_name(pod, json.loads(answer.body)["NodeNames"])

    async def against_floor(self, path: str, floor: str, bodies: Sequence[bytes]) -> tuple[Sample, Sample]:
        """Calls of Halfcard and of the floor, of all turns together."""
        mine: list[Call] = []
        theirs: list[Call] = []
        for turn in range(self.rounds.turns + 1):
            found = {each: await self.calls(each, bodies, self.rounds.calls) for each in (floor, path)}
            if turn:  # the first one only warms up
                mine += found[path]
                theirs += found[floor]
        return _sample(mine), _sample(theirs)

    async def calls(self, path: str, bodies: Sequence[bytes], count: int, before: Before = _nothing) -> list[Call]:
        """Measures one call; `before` runs ahead of each call and is not measured."""
        made = []
        for call in range(count):
            await before()
            used = self.server.cpu_s()
            answer = await self.caller.ask(path, bodies[call % len(bodies)])
            made.append(Call(answer.seconds * 1000, (self.server.cpu_s() - used) * 1000))
        return made

    async def first(self, path: str, bodies: Sequence[bytes]) -> Sample:
        """The first call about a claim."""
        return _sample(await self.calls(path, bodies, self.rounds.firsts, lambda: self.caller.control(FORGET)))

    async def after(self, path: str, bodies: Sequence[bytes], changes: int) -> Sample:
        """A call after a pod was added to so many nodes, or removed, since the last call."""
        return _sample(
            await self.calls(path, bodies, self.rounds.changes, lambda: self.caller.control(CHANGE, changes))
        )

    async def event_us(self) -> float:
        return median([await self.caller.control(CHANGE, self.size.nodes // 10) for _ in range(self.rounds.firsts)])


def _as_threads_come(nodes: Sequence[str], random: Random) -> list[str]:
    """Orders the nodes as the threads of the stock scheduler read them: in chunks of the list's square root."""
    size = max(1, isqrt(len(nodes)))
    pieces = iter([iter(nodes[at : at + size]) for at in range(0, len(nodes), size)])
    threads, found = [*islice(pieces, _THREADS)], []
    while threads:
        at = random.randrange(len(threads))
        if (node := next(threads[at], None)) is not None:
            found.append(node)
        else:
            threads[at : at + 1] = islice(pieces, 1)
    return found


def _sample(calls: Sequence[Call]) -> Sample:
    taken = sorted(call.taken for call in calls)
    p99 = taken[min(len(taken) - 1, int(len(taken) * 0.99))]
    return Sample(median(taken), p99, median(call.cpu for call in calls))


# --- the measurements -------------------------------------------------------------------------------------------------


async def _warm_filter(bench: Bench) -> list[Part]:
    parts = []
    for kind in ("a share", "two whole cards", "five whole cards, which no node has"):
        mine, floor = await bench.against_floor(names.FILTER_PATH, FLOOR_FILTER, bench.filter_calls(_KINDS[kind]))
        parts.append(Part(f"filter by name, warm: {kind}", _compared(mine, floor, MOST_WARM)))
    return parts


def _compared(mine: Sample, floor: Sample, at_most: float) -> list[Figure]:
    return [
        Figure("median", mine.p50, "ms"),
        Figure("median of the floor", floor.p50, "ms"),
        Figure("median against the floor's", mine.p50 / floor.p50, "x", at_most),
        Figure("p99 against the floor's", mine.p99 / floor.p99, "x", at_most),
        Figure("CPU against the floor's", mine.cpu / floor.cpu, "x", at_most),
    ]


async def _first_filter(bench: Bench) -> Part:
    figures = []
    for kind, pod in _KINDS.items():
        bodies = bench.filter_calls(pod)
        floor = _sample(await bench.calls(FLOOR_FILTER, bodies, _FLOORS))
        first = await bench.first(names.FILTER_PATH, bodies)
        figures += [
            Figure(f"{kind}", first.p50 / floor.p50, "x", MOST_FIRST, 1),
            Figure(f"{kind}: CPU", first.cpu / floor.cpu, "x", MOST_FIRST, 1),
        ]
    return Part("the first filter of a claim never seen, against the floor", figures)


async def _full_filter(bench: Bench) -> Part:
    nodes = [cluster.full_node(number) for number in range(bench.size.full_nodes)]
    body = cluster.in_full(_KINDS["two whole cards"], nodes)
    shorter = replace(bench, rounds=replace(bench.rounds, calls=1))
    mine, floor = await shorter.against_floor(names.FILTER_PATH, FLOOR_FILTER, [body])
    title = f"filter with {len(nodes):,} full Node objects, {len(body) / 1e6:.1f} MB"
    return Part(title, _compared(mine, floor, MOST_FULL))


async def _prioritize(bench: Bench) -> Part:
    figures = []
    for kind in ("a share", "two whole cards"):
        bodies = [await bench.prioritize_call(_KINDS[kind], call) for call in bench.filter_calls(_KINDS[kind])]
        mine, floor = await bench.against_floor(names.PRIORITIZE_PATH, FLOOR_PRIORITIZE, bodies)
        figures += [replace(each, name=f"{kind}: {each.name}") for each in _compared(mine, floor, MOST_WARM)]
    for kind, pod in _KINDS.items():
        first = await bench.first(names.PRIORITIZE_PATH, bench.filter_calls(pod))
        figures += [
            Figure(f"the first of {kind}", first.p50, "ms", MOST_FIRST_PRIORITIZE_MS, 1),
            Figure(f"the first of {kind}: CPU", first.cpu, "ms", MOST_FIRST_PRIORITIZE_MS, 1),
        ]
    return Part("prioritize on the feasible set", figures)


async def _changes(bench: Bench) -> Part:
    bodies = bench.filter_calls(_KINDS["a share"])
    figures = [Figure("one pod comes or goes", await bench.event_us(), "us", None, 1)]
    for path, what in ((names.FILTER_PATH, "filter"), (names.PRIORITIZE_PATH, "prioritize")):
        for count in (1, bench.size.nodes // 100, bench.size.nodes // 10):
            found = await bench.after(path, bodies, count)
            title = f"{what} after {count:,} nodes changed"
            figures += [Figure(title, found.p50, "ms"), Figure(f"{title}: CPU", found.cpu, "ms")]
    return Part("what changes cost", figures)


async def _inspect(bench: Bench) -> Part:
    """Filters as fast as answers come, alone and while a client reads the state of all nodes."""
    bodies = bench.filter_calls(_KINDS["a share"])
    await bench.caller.ask(names.FILTER_PATH, bodies[0])
    alone = await bench.calls(names.FILTER_PATH, bodies, bench.rounds.turns)
    began = time.perf_counter()
    reading = asyncio.create_task(_read_all(bench.server.port, names.INSPECT_PATH))
    during = await bench.calls(names.FILTER_PATH, bodies, 2)
    while not reading.done():
        during += await bench.calls(names.FILTER_PATH, bodies, 1)
    size, taken = await reading, time.perf_counter() - began
    figures = [
        Figure("slowest filter alone", max(call.taken for call in alone), "ms"),
        Figure("slowest filter during /inspect", max(call.taken for call in during), "ms"),
        Figure(
            "... 99 of 100: CPU until the answer",
            quantiles((each.cpu for each in during), n=100)[-1],
            "ms",
            MOST_HELD_MS,
        ),
        Figure("filters during /inspect", len(during), "", None, 0),
        Figure("/inspect", taken, "s"),
    ]
    return Part(f"inspections: {size / 1e6:.1f} MB", figures)


async def _read_all(port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    body = await reader.read()
    writer.close()
    return len(body)


class Costs(NamedTuple):
    """Figures of one turn, each in its own unit; only figures of one kind are compared."""

    warm: float
    changed: float
    event: float


_GROWING: Final = ("warm filter", "filter after a pod came or went", "a pod that comes or goes")


async def _costs(bench: Bench, bodies: Sequence[bytes]) -> Costs:
    await bench.caller.ask(names.FILTER_PATH, bodies[0])  # what the turn before has changed
    warm = await bench.calls(names.FILTER_PATH, bodies, bench.rounds.calls)
    changed = await bench.calls(names.FILTER_PATH, bodies, 3, lambda: bench.caller.control(CHANGE, 1))
    event = await bench.caller.control(CHANGE, bench.size.nodes // 10)
    return Costs(_sample(warm).cpu, _sample(changed).cpu, event)


async def _growth(few: Bench, many: Bench) -> Part:
    """Runs both servers in turns, so that other load on the machine affects both alike."""
    pods = await many.caller.control(GROW)
    bodies = few.filter_calls(_KINDS["a share"])
    turns = [(await _costs(few, bodies), await _costs(many, bodies)) for _ in range(few.rounds.turns // 4 + 1)]
    ratios = zip(*[[later / before for before, later in zip(*turn, strict=True)] for turn in turns[1:]], strict=True)
    figures = [
        Figure(f"{what}: many against few", median(found), "x", MOST_GROWTH)
        for what, found in zip(_GROWING, ratios, strict=True)
    ]
    memory = [
        Figure(f"memory with {how}", each.server.resident_mb(), "MB", None, 1)
        for how, each in (("few", few), ("many", many))
    ]
    title = f"as pods grow from {few.size.pods:,} to {pods:,.0f} (CPU of the server)"
    return Part(title, figures + memory)


# --- the program ------------------------------------------------------------------------------------------------------

_CASES: Final[dict[str, Callable[[Bench], Any]]] = {
    "warm": _warm_filter,
    "first": _first_filter,
    "full": _full_filter,
    "prioritize": _prioritize,
    "changes": _changes,
    "inspect": _inspect,
}
_GROWTH: Final = "growth"


async def measure(servers: Sequence[Server], size: Size, rounds: Rounds, cases: Sequence[str]) -> list[Part]:
    """Runs all kinds of calls; the second server, if there is one, measures growth."""
    bench, *others = [Bench(Caller(server), server, size, rounds) for server in servers]
    title = f"The extender: {size.nodes:,} nodes with {cluster.CARDS} cards, {size.pods:,} placed pods"
    parts = [Part(title, [Figure("from the command to ready", bench.server.start_s, "s")])]
    gc.disable()
    for case in cases:
        found = await (_growth(bench, *others) if case == _GROWTH else _CASES[case](bench))
        parts += found if isinstance(found, list) else [found]
        print(f"  extender: {case}", file=sys.stderr)
    gc.enable()
    for each in (bench, *others):
        await each.caller.end()
    return parts


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    size = Size(nodes=arguments.nodes, pods=4 * arguments.nodes, pods_later=40 * arguments.nodes)
    size = replace(size, full_nodes=min(size.full_nodes, size.nodes))
    rounds = Rounds(turns=5, firsts=3, changes=6) if arguments.quick else Rounds()
    busy = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the run"
    cases = arguments.cases or (*_CASES, _GROWTH)
    with ExitStack() as stack:
        servers = [stack.enter_context(extender(stack.enter_context(scratch()), size)) for _ in range(_servers(cases))]
        stack.enter_context(apart(*servers))
        parts = uvloop.run(measure(servers, size, rounds, cases))
    print(f"{busy}\n\n{table(parts)}")
    write_json(parts, arguments.json)
    print(f"\nwritten to {arguments.json}", file=sys.stderr)
    return 0


def _servers(cases: Sequence[str]) -> int:
    return 2 if _GROWTH in cases else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.extender", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(_CASES)}, {_GROWTH}")
    parser.add_argument("--nodes", type=int, default=Size().nodes, help="default %(default)s")
    parser.add_argument("--json", type=Path, default=_OUT, metavar="FILE", help="default %(default)s")
    parser.add_argument("--quick", action="store_true", help="a few seconds and rough numbers")
    return parser


if __name__ == "__main__":
    sys.exit(main())
