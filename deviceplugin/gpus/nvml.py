"""The cards of NVIDIA's driver.

Invariant: a driver that disappears is reopened at the next call, and never closed while a call waits in it. A process
has one `Nvml` at a time, since the library belongs to the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock
from typing import Final, TypeVar

import pynvml  # type: ignore[import-untyped]

from .card_facts import STALE
from .driver import as_gpus_error
from .driver_session import Session
from .interface import Gpu, Incident, Load

T = TypeVar("T")

_SLICE_S: Final = 0.25  # a call waits at most this long for `wait` to end, where the driver must be reopened


class Nvml:
    """The driver through NVML; NUMA nodes are read from `sysfs`.

    For a card in trouble the driver is reopened, but only every `patience_s`: reopening takes seconds where no other
    program keeps the driver awake, and incidents in between are missed.
    """

    is_made_up = False

    def __init__(self, sysfs: Path = Path("/sys"), patience_s: float = 10.0) -> None:
        self._sysfs = sysfs
        self._patience_s = patience_s
        self._session: Session | None = None
        self._asking = Lock()
        self._waiting = Lock()
        self._ended = Event()

    def read(self) -> tuple[Gpu, ...]:
        with self._asking:
            self._look_afresh()
            return self._answer(Session.read)

    def load(self, uuid: str) -> Load:
        with self._asking:
            return self._answer(lambda session: session.load(uuid))

    def limit_memory(self, uuid: str, cgroup: str, mib: int) -> None:
        with self._asking:
            self._answer(lambda session: session.limit_memory(uuid, cgroup, mib))

    def wait(self, timeout_s: float) -> tuple[Incident, ...]:
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0 and not self._ended.is_set():
            if incidents := self._wait_a_little(min(left, _SLICE_S)):
                return incidents
        return ()

    def close(self) -> None:
        """Closes the driver and ends a pending `wait`."""
        self._ended.set()
        with self._asking:
            self._let_go()

    def _look_afresh(self) -> None:
        session = self._session
        if session is not None and session.is_doubtful and time.monotonic() - session.opened_at >= self._patience_s:
            self._let_go()

    def _answer(self, question: Callable[[Session], T]) -> T:
        """Calls once more with a reopened driver where the handles are invalid."""
        was_open = self._session is not None
        try:
            try:
                return self._asked(question)
            except pynvml.NVMLError:
                if not was_open or self._session is not None:
                    raise
                return self._asked(question)
        except pynvml.NVMLError as error:
            raise as_gpus_error(error) from None

    def _asked(self, question: Callable[[Session], T]) -> T:
        if self._session is None:
            self._session = Session(self._sysfs)
        try:
            return question(self._session)
        except pynvml.NVMLError as error:
            if error.value in STALE:
                self._let_go()
            raise

    def _let_go(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with self._waiting:
                session.close()

    def _wait_a_little(self, timeout_s: float) -> tuple[Incident, ...]:
        """Waits for incidents; sleeps where the driver is not available, which the next `read` reports."""
        with self._waiting:
            session = self._session
            if session is not None and session.has_events:
                try:
                    return session.wait(timeout_s)
                except pynvml.NVMLError:
                    pass
        self._ended.wait(timeout_s)
        return ()
