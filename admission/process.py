"""The running webhook: its two listeners, what follows the cluster, and what is said when something is wrong there."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from kube.source import ClusterSource
from serving.address import Address
from serving.health import health_app
from serving.jobs import Job, beside, report
from serving.lifecycle import Lifecycle
from serving.listener import Listener, Stopping, serve
from serving.log import Log
from serving.tls import ReloadingContext

from .app import admission_app
from .metrics import Metrics
from .policy import Policy

ADMISSION: Final = "admission"
STATUS: Final = "status"


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
        async with beside((self.source.watch(), report(self.source.problems, self.log), *jobs), self.log):
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
