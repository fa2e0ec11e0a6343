"""What kubelet waits for at the node agent's sockets, beside a floor of the same run.

The floor is the same server answering a constant: what is beyond it is what the decision costs. Calls of both take
turns.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import grpc

from deviceplugin.kubelet import device_plugin_pb2 as wire
from deviceplugin.kubelet.pod_resources import PodResources
from halfcard import names

from .agent_plugin_server import COUNTS, FLOOR, HELD, NEW, PODS, SICK, held_ids
from .figures import Figure, Part
from .servers import ROOT, Server, apart

_SERVICE: Final = "/v1beta1.DevicePlugin"
_MOST_MS: Final = 5.0
_MOST_TOLD_MS: Final = 20.0
_MOST_TOLD_KB: Final = 500.0

Call = Any


class Caller:
    """kubelet's side of one plugin."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=[("grpc.use_local_subchannel_pool", 1)])
        self._allocate: Call = self._channel.unary_unary(f"{_SERVICE}/Allocate")
        self._prestart: Call = self._channel.unary_unary(f"{_SERVICE}/PreStartContainer")

    def allocate(self, request: bytes) -> float:
        """Milliseconds."""
        began = time.perf_counter()
        self._allocate(request)
        return (time.perf_counter() - began) * 1000

    def listen(self) -> Iterator[bytes]:
        stream: Call = self._channel.unary_stream(f"{_SERVICE}/ListAndWatch")
        answers: Iterator[bytes] = stream(b"")
        next(answers)
        return answers

    def prestart(self, *ids: str) -> Call:
        """The call; cancelled when nothing refers to it any more."""
        return self._prestart.future(wire.PreStartContainerRequest(devices_ids=ids).SerializeToString())


def _request(ids: Sequence[str]) -> bytes:
    asked = wire.ContainerAllocateRequest(devices_ids=ids)
    return wire.AllocateRequest(container_requests=[asked]).SerializeToString()


def _allocate(callers: Mapping[str, Caller], rounds: int) -> Part:
    """Calls PreStartContainer for each slot, so that each call replaces what the slot's last container was granted."""
    held = [held_ids(names.VCUDA_CORE, pod) for pod in range(PODS)]
    requests = [_request(ids) for ids in held]
    taken: dict[str, list[float]] = {FLOOR: [], names.VCUDA_CORE: []}
    for number in range(rounds + 1):
        for ids in held:
            callers[names.VCUDA_CORE].prestart(*ids).result()
        for request in requests:
            for resource, times in taken.items():
                spent = callers[resource].allocate(request)
                if number:  # the first round only warms up
                    times.append(spent)
    mine, floor = (sorted(taken[resource]) for resource in (names.VCUDA_CORE, FLOOR))
    figures = [
        Figure("median", median(mine), "ms"),
        Figure("median of the floor", median(floor), "ms"),
        Figure("p99", _p99(mine), "ms", _MOST_MS),
        Figure("p99 of the floor", _p99(floor), "ms"),
        Figure("median against the floor's", median(mine) / median(floor), "x"),
    ]
    return Part(f"Allocate of {HELD[names.VCUDA_CORE]} ids, {PODS} pods in turn, {len(mine):,} calls", figures)


def _p99(ordered: Sequence[float]) -> float:
    return ordered[int(len(ordered) * 0.99)]


def _listing(callers: Mapping[str, Caller], rounds: int) -> Part:
    """Measures from the call that changes the devices to the last byte of both lists."""
    streams = {resource: callers[resource].listen() for resource in COUNTS}

    def publish(change: str) -> tuple[float, int]:
        began = time.perf_counter()
        calls = [callers[resource].prestart(change) for resource in streams]
        size = sum(len(next(stream)) for stream in streams.values())
        spent = (time.perf_counter() - began) * 1000
        for call in calls:
            call.result()
        return spent, size

    publish(NEW)
    new, sick = ([publish(change) for _ in range(rounds)] for change in (NEW, SICK))
    figures = [
        Figure("all ids are new", median(spent for spent, _ in new), "ms", _MOST_TOLD_MS),
        Figure("one card falls ill", median(spent for spent, _ in sick), "ms", _MOST_TOLD_MS),
        Figure("size of the lists", max(size for _, size in new + sick) / 1000, "kB", _MOST_TOLD_KB, 1),
    ]
    ids = " + ".join(f"{number:,}" for number in COUNTS.values())
    return Part(f"ListAndWatch for 8 cards of 80 GB: {ids} ids, each time the call that changes them included", figures)


async def _holders(socket: Path, rounds: int) -> Part:
    pod_resources = PodResources(socket)
    taken = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        held = await pod_resources.listed_devices()
        taken.append((time.perf_counter() - began) * 1000)
    await pod_resources.close()
    title = f"pod-resources of {PODS} pods with {' + '.join(map(str, HELD.values()))} ids: {len(held)} holders"
    return Part(title, [Figure("median", median(taken[1:]), "ms")])


@contextmanager
def _agent(folder: Path) -> Iterator[tuple[Server, dict[str, str]]]:
    """The child process, and the sockets of its plugins."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "bench.agent_plugin_server", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            endpoints = json.loads(process.stdout.readline())
            yield Server(process, 0, None, time.perf_counter() - began), endpoints
        finally:
            process.kill()


def measure(folder: Path, rounds: int) -> list[Part]:
    with _agent(folder) as (server, endpoints), apart(server):
        callers = {resource: Caller(folder / endpoint) for resource, endpoint in endpoints.items()}
        gc.disable()
        parts = [_allocate(callers, rounds), _listing(callers, rounds)]
        parts.append(asyncio.run(_holders(folder / "pods.sock", rounds)))
        gc.enable()
        return [*parts, Part("The process that answered", [Figure("memory", server.resident_mb(), "MB", None, 1)])]
