"""What a scrape of a full node costs its agent, beside the floor of the same run.

The floor is the same server answering as many bytes that it has ready: what is beyond it is what looking costs.
Calls of both take turns on one kept connection.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import uvloop

from deviceplugin.usage.cgroups import Cgroups
from halfcard import names

from .agent_server import CARDS, FLOOR
from .connection import Connection
from .figures import Figure, Part
from .servers import Server, agent, apart, scratch

MOST_MS: Final = 10.0
MOST_MB: Final = 80.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Times in milliseconds; `cpu` is what the server used, which a busy machine does not distort."""

    taken: float
    cpu: float
    answered: int


def measure(containers: int, calls: int) -> list[Part]:
    with scratch() as folder, agent(folder, containers) as server, apart(server):
        return uvloop.run(_compare(server, containers, calls))


async def _compare(server: Server, containers: int, calls: int) -> list[Part]:
    connection = await Connection.open(server.port, None)
    mine, floor = [], []
    for _ in range(calls):
        mine.append(await _ask(server, connection, names.METRICS_PATH))
        floor.append(await _ask(server, connection, FLOOR))
    connection.close()
    title = f"A scrape of {containers} containers with a process each on {CARDS} cards, {mine[0].answered // 1000} kB"
    return [Part(title, [*_compared(mine[1:], floor[1:]), *_beside(server, containers)])]


async def _ask(server: Server, connection: Connection, path: str) -> Sample:
    used = server.cpu_s()
    answer = await connection.ask(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    if answer.status != 200:
        raise RuntimeError(f"{path} failed: {answer.status} {answer.body[:500]!r}")
    return Sample(answer.seconds * 1000, (server.cpu_s() - used) * 1000, len(answer.body))


def _compared(mine: Sequence[Sample], floor: Sequence[Sample]) -> list[Figure]:
    taken = sorted(each.taken for each in mine)
    middle, least = median(taken), median(each.taken for each in floor)
    return [
        Figure("median", middle, "ms", MOST_MS),
        Figure("p99", taken[int(len(taken) * 0.99)], "ms"),
        Figure("median of the floor", least, "ms"),
        Figure("median against the floor's", middle / least, "x", digits=1),
        Figure("CPU of a scrape, median", median(each.cpu for each in mine), "ms", MOST_MS),
        Figure("CPU of the floor, median", median(each.cpu for each in floor), "ms"),
    ]


def _beside(server: Server, containers: int) -> list[Figure]:
    """The server's processes are files; the note says how long this machine's own /proc takes."""
    cgroups, me = Cgroups(), os.getpid()
    return [
        Figure(
            f"the owners of {containers} processes by this machine's /proc", _ms(cgroups.owner, me, containers), "ms"
        ),
        Figure("... once they are known", _ms(cgroups.process, me, containers), "ms"),
        Figure("resident memory of the HTTP side alone", server.resident_mb(), "MB", MOST_MB, 1),
    ]


def _ms(look: Callable[[int], object], pid: int, times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        look(pid)
    return (time.perf_counter() - began) * 1000
