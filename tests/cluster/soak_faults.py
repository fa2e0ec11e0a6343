"""The faults of the soak, and for how long they excuse an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

from devcluster.services.installation import Installation, Replica
from halfcard import names

from .soak_calls import Down, Window

_SETTLE_S: Final = 2.0
"""Seconds until the API server knows a change of a Service, and hanging calls have ended."""
_HTTPS: Final = 443
_HANG_S: Final = (2.0, 14.0)  # both webhooks of a pod are given up after 10


class Faults:
    """Causes one fault at a time. The first replica is only paused: its memory is measured during the whole soak."""

    def __init__(self, installation: Installation, random: Random, watch: Callable[[], None]) -> None:
        """`watch` is called before a process is killed, since its counters are lost with it."""
        self._installation = installation
        self._random = random
        self._watch = watch
        self._kinds = [self._kill_replica, self._replace_replica, self._kill_api_server, self._pause_all]
        self._round: list[Callable[[], None]] = []
        self.windows: list[Window] = []
        self.done: list[str] = []

    def next(self) -> None:
        """Causes the next fault: each kind once per round, in random order."""
        if not self._round:
            self._round = self._random.sample(self._kinds, len(self._kinds))
        fault = self._round.pop()
        self.done.append(fault.__name__.strip("_").replace("_", " "))
        self._watch()
        fault()

    @contextmanager
    def _recorded(self, down: Down) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
            time.sleep(_SETTLE_S)
        finally:
            self.windows.append(Window(down, begin, time.monotonic()))

    @property
    def _second(self) -> Replica:
        return self._installation.replicas[1]

    def _kill_replica(self) -> None:
        """Kills a replica as a crash does: kubelet removes it from the Service and restarts it."""
        cluster, replica = self._installation.cluster, self._second
        where = (names.NAMESPACE, names.ADMISSION_SERVICE)
        with self._recorded(Down.REPLICA):
            replica.program.kill()
            cluster.withdraw(*where, replica.port)
        time.sleep(self._random.uniform(1, 5))  # the other replica serves alone, without an error
        replica.program.start()
        cluster.wait_until(replica.ready, what="the killed replica to be back")
        cluster.expose(*where, _HTTPS, replica.port)

    def _replace_replica(self) -> None:
        """Replaces a replica as a rolling update does, without an error."""
        old = self._second
        self._installation.add_replica()
        self._watch()
        self._installation.end(old)

    def _kill_api_server(self) -> None:
        with self._recorded(Down.API_SERVER):
            self._installation.cluster.components.restart("kube-apiserver")

    def _pause_all(self) -> None:
        programs = [replica.program for replica in self._installation.replicas]
        with self._recorded(Down.ALL_REPLICAS):
            for program in programs:
                program.pause()
            time.sleep(self._random.uniform(*_HANG_S))
            for program in programs:
                program.resume()
