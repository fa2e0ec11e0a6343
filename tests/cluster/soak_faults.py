"""What breaks during the soak, and for how long it may be noticed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

from devcluster.services.installation import Installation, Replica
from halfcard import names

from .soak_calls import Away, Window

_SETTLE_S: Final = 2.0
"""Until the API server has heard of a Service's change, and calls that hung have ended."""
_HTTPS: Final = 443
_HANG_S: Final = (2.0, 14.0)  # both webhooks of a pod are given up after 10


class Faults:
    """One at a time. The first replica is only ever paused: its memory tells of the whole soak."""

    def __init__(self, installation: Installation, random: Random, watch: Callable[[], None]) -> None:
        """`watch` is called before a process goes, and what it has counted with it."""
        self._installation = installation
        self._random = random
        self._watch = watch
        self._kinds = [self._kill_replica, self._replace_replica, self._kill_api_server, self._pause_all]
        self._round: list[Callable[[], None]] = []
        self.windows: list[Window] = []
        self.done: list[str] = []

    def next(self) -> None:
        """Each kind once, in any order, before any comes again."""
        if not self._round:
            self._round = self._random.sample(self._kinds, len(self._kinds))
        fault = self._round.pop()
        self.done.append(fault.__name__.strip("_").replace("_", " "))
        self._watch()
        fault()

    @contextmanager
    def _noticed(self, away: Away) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
            time.sleep(_SETTLE_S)
        finally:
            self.windows.append(Window(away, begin, time.monotonic()))

    @property
    def _second(self) -> Replica:
        return self._installation.replicas[1]

    def _kill_replica(self) -> None:
        """As when a container dies: kubelet takes it out of the Service, and starts it again."""
        cluster, replica = self._installation.cluster, self._second
        where = (names.NAMESPACE, names.ADMISSION_SERVICE)
        with self._noticed(Away.REPLICA):
            replica.program.kill()
            cluster.withdraw(*where, replica.port)
        time.sleep(self._random.uniform(1, 5))  # the other one serves alone, and nobody is to notice
        replica.program.start()
        cluster.wait_until(replica.ready, what="the killed replica to be back")
        cluster.expose(*where, _HTTPS, replica.port)

    def _replace_replica(self) -> None:
        """As in a rolling update: nobody is to notice."""
        old = self._second
        self._installation.add_replica()
        self._watch()
        self._installation.end(old)

    def _kill_api_server(self) -> None:
        with self._noticed(Away.API_SERVER):
            self._installation.cluster.components.restart("kube-apiserver")

    def _pause_all(self) -> None:
        programs = [replica.program for replica in self._installation.replicas]
        with self._noticed(Away.ALL_REPLICAS):
            for program in programs:
                program.pause()
            time.sleep(self._random.uniform(*_HANG_S))
            for program in programs:
                program.resume()
