"""The running webhook: its two listeners, what follows the cluster, and what is said when something is wrong there."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry

from kube.source import ClusterSource
from serving.address import Address
from serving.health import health_app
from serving.lifecycle import Lifecycle
from serving.listener import Listener, Stopping, serve
from serving.log import Log
from serving.tls import ReloadingContext

from .app import admission_app
from .metrics import Metrics
from .policy import Policy

ADMISSION: Final = "admission"
STATUS: Final = "status"
_REPORT_EVERY_S: Final = 1.0

Job = Coroutine[Any, Any, None]


@dataclass(frozen=True, slots=True)
class Addresses:
    admission: Address
    status: Address


@dataclass(frozen=True, slots=True)
class Webhook:
    """All that a running webhook is made of."""

    policy: Policy
    source: ClusterSource
    tls: ReloadingContext
    addresses: Addresses
    stopping: Stopping
    log: Log

    async def run(
        self,
        lifecycle: Lifecycle,
        *,
        on_ready: Callable[[Mapping[str, Address]], None] | None = None,
        jobs: Sequence[Job] = (),
    ) -> None:
        """Serves until the process is told to stop; `jobs` run beside it."""
        beside = (self.source.watch(), _report(self.source, self.log), *jobs)
        async with _beside([_watched(job, self.log) for job in beside]):
            await serve(
                self._listeners(lifecycle),
                lifecycle=lifecycle,
                log=self.log,
                stopping=self.stopping,
                on_ready=on_ready,
            )

    def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        """Readiness does not wait for the cluster's state: what is not known is not checked, and judging goes on."""
        registry = CollectorRegistry()
        metrics = Metrics(registry)
        app = admission_app(policy=self.policy, cluster=self.source.view, metrics=metrics, log=self.log)
        health = health_app(checks={}, lifecycle=lifecycle, registry=registry)
        gc.freeze()  # what start-up made lives as long as the process: no collection needs to look at it again
        where = self.addresses
        return (
            Listener(ADMISSION, where.admission.host, where.admission.port, app, self.tls),
            Listener(STATUS, where.status.host, where.status.port, health),
        )


@contextlib.asynccontextmanager
async def _beside(jobs: Sequence[Job]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watched(job: Job, log: Log) -> None:
    """A job that ends by a bug of ours says so; judging goes on with what is known."""
    try:
        await job
    except Exception:  # noqa: BLE001 - whatever the bug is, it must not end in silence
        log.error("a background job has ended", trace=traceback.format_exc())  # noqa: TRY400 - the trace is a field


async def _report(source: ClusterSource, log: Log) -> None:
    """Each problem with the cluster's state is said once, and once more when it comes back."""
    said: tuple[str, ...] = ()
    while True:
        problems = source.problems()
        for problem in problems:
            if problem not in said:
                log.warning("state", problem=problem)
        said = problems
        await asyncio.sleep(_REPORT_EVERY_S)
