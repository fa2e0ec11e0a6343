"""Sends thousands of requests over a few open connections, and reports progress."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from ..objects import Object
from .control_plane import ControlPlane

CONNECTIONS: Final = 8
_TIMEOUT_S: Final = 60.0
_ATTEMPTS: Final = 5
_REPORT_EVERY_S: Final = 5.0
_TOO_MANY_REQUESTS: Final = 429


@dataclass(frozen=True, slots=True)
class LoadRequest:
    method: str
    path: str
    body: Object | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many requests were sent, and in how many seconds."""

    what: str
    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return f"{self.count:,} {self.what} in {self.seconds:.1f} s, {self.per_second:.0f}/s"


def progress_line(done: Tally, total: int) -> str:
    rest = f"about {(total - done.count) / done.per_second:.0f} s left" if done.count else "starting"
    return f"  {done.count:,} of {total:,} {done.what}, {done.per_second:.0f}/s, {rest}"


@dataclass(slots=True)
class _Work:
    """The requests that are left, and the number of those that are done."""

    requests: Iterator[LoadRequest]
    done: int = 0
    stopped: bool = False
    lock: Lock = field(default_factory=Lock)

    def next(self) -> LoadRequest | None:
        with self.lock:
            return None if self.stopped else next(self.requests, None)

    def count_one(self) -> None:
        with self.lock:
            self.done += 1


class _Sender:
    """One connection, which sends requests until none is left."""

    def __init__(self, cluster: ControlPlane) -> None:
        client, user = cluster.client, cluster.admin
        self._headers = {"Content-Type": "application/json", **user.headers()}
        self._connection = http.client.HTTPSConnection(
            client.address, client.port, timeout=_TIMEOUT_S, context=user.tls(client.authority)
        )

    def drain(self, work: _Work) -> None:
        try:
            while request := work.next():
                self._send(request)
                work.count_one()
        finally:
            self._connection.close()

    def _send(self, request: LoadRequest) -> None:
        for _ in range(_ATTEMPTS):
            status, text, pause_s = self._once(request)
            if status != _TOO_MANY_REQUESTS:
                break
            time.sleep(pause_s)
        if not 200 <= status < 300:
            raise AssertionError(f"{request.method} {request.path}: the API server answered {status}: {text}")

    def _once(self, request: LoadRequest) -> tuple[int, str, float]:
        payload = None if request.body is None else json.dumps(request.body)
        self._connection.request(request.method, request.path, body=payload, headers=self._headers)
        answer = self._connection.getresponse()
        text = answer.read().decode(errors="replace")
        return answer.status, text, float(answer.headers.get("Retry-After", "1"))


def _drop(line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class LoadGenerator:
    """Sends requests to one cluster over a number of connections; `say` gets the progress lines."""

    cluster: ControlPlane
    connections: int = CONNECTIONS
    say: Callable[[str], None] = _drop

    def send(self, requests: Iterable[LoadRequest], *, what: str, total: int) -> Tally:
        """Sends all requests; raises the first failure. `what` completes the line "4,000 of 20,000 …"."""
        work = _Work(iter(requests))
        started = time.monotonic()
        with ThreadPoolExecutor(self.connections, thread_name_prefix="load") as pool:
            pending = {pool.submit(_Sender(self.cluster).drain, work) for _ in range(self.connections)}
            while pending:
                ended, pending = wait(pending, timeout=_REPORT_EVERY_S, return_when=FIRST_EXCEPTION)
                _raise_failure(ended, work)
                if pending:
                    self.say(progress_line(Tally(what, work.done, time.monotonic() - started), total))
        return Tally(what, work.done, time.monotonic() - started)


def _raise_failure(ended: Iterable[Future[None]], work: _Work) -> None:
    for each in ended:
        if each.exception():
            work.stopped = True
            each.result()
