"""A server as a child process on a core of its own, and what the kernel says it has used."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from .extender_cluster import Size

ROOT: Final = Path(__file__).resolve().parent.parent
_CPU_CLOCK: Final = 2  # of a process's three clocks the one that the scheduler keeps, in nanoseconds
_READY_WITHIN_S: Final = 30.0
_LOG_TAIL: Final = 2000


@dataclass(frozen=True, slots=True)
class Server:
    """A child process that has reported ready; `prefix` comes before each path, such as a caller token."""

    process: subprocess.Popen[bytes]
    port: int
    ca: Path | None
    start_s: float
    prefix: str = ""

    def addressed(self, request: bytes) -> bytes:
        """Returns a request with the prefix before its path."""
        return request.replace(b" /", b" %s/" % self.prefix.encode(), 1)

    def cpu_s(self) -> float:
        return cpu_s(self.process.pid)

    def resident_mb(self) -> float:
        return resident_mb(self.process.pid)

    def tls(self) -> ssl.SSLContext | None:
        return None if self.ca is None else ssl.create_default_context(cafile=str(self.ca))


def cpu_s(pid: int) -> float:
    """CPU time of all threads, in user mode and in the kernel."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


@contextmanager
def webhook(folder: Path) -> Iterator[Server]:
    """Starts `halfcard serve` with an empty cluster, its certificates in `folder`."""
    state = folder / "state"
    state.mkdir(exist_ok=True)
    free = "127.0.0.1:0"
    where = ["--admission", free, "--extender", free, "--status", free, "--tls-dir", str(folder / "tls")]
    with _child(["-m", "cli", "serve", "--state", str(state), *where, "--grace", "0"], log=folder / "log") as child:
        yield child


@contextmanager
def floor(folder: Path) -> Iterator[Server]:
    """The same serving stack answering a constant."""
    with _child(["-m", "bench.floor", str(folder / "tls")], log=folder / "floor.log") as child:
        yield child


@contextmanager
def go_server(folder: Path, program: Path) -> Iterator[Server]:
    """A program with the webhook's certificates, on one core like the webhook."""
    with _program([str(program), str(folder / "tls")], log=folder / "go.log", GOMAXPROCS="1") as child:
        yield child


@contextmanager
def extender(folder: Path, size: Size) -> Iterator[Server]:
    """The scheduler extender over a synthetic cluster, without TLS."""
    wanted = [str(size.nodes), str(size.pods), str(size.pods_later)]
    with _child(["-m", "bench.extender_server", *wanted], log=folder / "extender.log") as child:
        yield child


@contextmanager
def agent(folder: Path, containers: int) -> Iterator[Server]:
    """Starts the node agent's HTTP side on a synthetic node."""
    with _child(["-m", "bench.agent_server", str(containers), str(folder / "proc")], log=folder / "agent.log") as child:
        yield child


@contextmanager
def _child(arguments: Sequence[str], *, log: Path) -> Iterator[Server]:
    with _program([sys.executable, *arguments], log=log) as child:
        yield child


@contextmanager
def _program(command: Sequence[str], *, log: Path, **environment: str) -> Iterator[Server]:
    began = time.perf_counter()
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, env=os.environ | environment
        ) as process,
    ):
        try:
            line = _first_line(process, log)
            yield _ready(process, line, time.perf_counter() - began)
        finally:
            process.kill()


def _first_line(process: subprocess.Popen[bytes], log: Path) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait(_READY_WITHIN_S)
        tail = log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
        raise RuntimeError(f"the server did not come up, exit code {process.returncode}; its log ends:\n{tail}")
    return line


def _ready(process: subprocess.Popen[bytes], line: bytes, start_s: float) -> Server:
    told = json.loads(line)
    url, ca = told.get("admission") or told.get("extender") or told["agent"], told.get("ca")
    where = urlsplit(url)
    return Server(process, where.port or 0, Path(ca) if ca else None, start_s, where.path)


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="halfcard-bench-") as name:
        yield Path(name)


@contextmanager
def apart(*servers: Server) -> Iterator[bool]:
    """Pins the servers to one core and this process to another; returns whether the machine allows it."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if len(before) < 2:
        yield False
        return
    first, second, *_ = sorted(before)
    for server in servers:
        os.sched_setaffinity(server.process.pid, {first})
    os.sched_setaffinity(0, {second})
    try:
        yield True
    finally:
        os.sched_setaffinity(0, before)
