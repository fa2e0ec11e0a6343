"""The whole agent as a process on a full node: how soon kubelet knows it, how fast it answers, its memory and idle CPU.

kubelet, API server and driver are stand-ins (see `agent_node`); the agent is the one that is deployed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from halfcard import names

from .agent_node import ASKS, PODS, Node, full_node, ids_of
from .connection import Connection
from .figures import Figure, Part
from .servers import Server

MOST_START_S: Final = 1.0
MOST_ALLOCATE_MS: Final = 5.0
MOST_MB: Final = 80.0
MOST_IDLE: Final = 0.5
_SETTLED_S: Final = 3.0
_MADE_UP: Final = ("--fake-gpus", "8xH100-80GB-HBM3")


async def measure(folder: Path, *, starts: int = 5, scrapes: int = 10, idle_s: float = 30.0) -> list[Part]:
    async with full_node(folder) as node:
        parts = [await _starts(node, starts)]
        async with node.agent() as server:
            parts.append(await _answers(node))
            parts.append(await _memory(server, scrapes))
        async with node.agent(*_MADE_UP) as server:
            parts.append(await _idle(server, idle_s))
    return parts


async def _starts(node: Node, starts: int) -> Part:
    taken, used = [], []
    for _ in range(starts):
        async with node.agent() as server:
            taken.append(server.start_s)
            used.append(server.cpu_s())
    figures = [
        Figure("median", median(taken), "s", MOST_START_S),
        Figure("CPU of it", median(used), "s"),
    ]
    return Part(f"From the command until kubelet knows all resources beside {PODS} pods, {starts} starts", figures)


async def _answers(node: Node) -> Part:
    """Sends for each container the calls of its pod's admission, then those of its start."""
    allocate = sorted([await _ms(node, "allocate", pod, each) for pod in range(PODS) for each in ASKS])
    prestart = sorted([await _ms(node, "prestart", pod, each) for pod in range(PODS) for each in ASKS])
    figures = [
        Figure("Allocate, median", median(allocate), "ms"),
        Figure("Allocate, p99", _p99(allocate), "ms", MOST_ALLOCATE_MS),
        Figure("PreStartContainer, median", median(prestart), "ms"),
        Figure("PreStartContainer, p99", _p99(prestart), "ms"),
    ]
    return Part(f"Calls of a kubelet with {PODS} pods, one after the other", figures)


async def _ms(node: Node, call: str, pod: int, resource: str) -> float:
    client = node.kubelet.clients[resource]
    began = time.perf_counter()
    await getattr(client, call)(*ids_of(resource, pod))
    return (time.perf_counter() - began) * 1000


def _p99(ordered: Sequence[float]) -> float:
    return ordered[int(len(ordered) * 0.99)]


async def _memory(server: Server, scrapes: int) -> Part:
    connection = await Connection.open(server.port, None)
    request = f"GET {names.METRICS_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    answers = [await connection.ask(request) for _ in range(scrapes)]
    connection.close()
    if answers[-1].status != 200:
        raise RuntimeError(f"a scrape failed: {answers[-1].body[:500]!r}")
    figure = Figure("resident memory", server.resident_mb(), "MB", MOST_MB, 1)
    return Part(f"The process after these calls and {scrapes} scrapes of {len(answers[-1].body) // 1000} kB", [figure])


async def _idle(server: Server, seconds: float) -> Part:
    await asyncio.sleep(_SETTLED_S)
    before = server.cpu_s()
    await asyncio.sleep(seconds)
    share = (server.cpu_s() - before) / seconds * 100
    print("  idle: done", file=sys.stderr)
    note = "without a driver: the stand-in's looks 10 times a second whether something happened"
    figure = Figure(f"CPU of {seconds:.0f} s", share, "%", MOST_IDLE)
    return Part(f"An agent beside {PODS} pods to whom nothing happens", [figure], [note])
