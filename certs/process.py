"""The running keeper of an installation's certificates; any number of replicas, and none of them leads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry

from certs.chains import CONFIGURATIONS, Chain, ObjectPath
from certs.controller import EVERY_S, ChainsController
from certs.metrics import CertificateMetrics
from certs.reconcile import kind_of
from certs.secret_events import SecretEvents
from certs.store import ApiStore
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.api.informer import Informer, follow_jobs
from kube.api.list_watch import Collection
from serving.address import Address
from serving.background_jobs import report_problems, run_in_background
from serving.health_endpoints import health_app
from serving.lifecycle import Lifecycle
from serving.listener import Listener, StopTimings, serve
from serving.log import Log

STATUS: Final = "status"
_AT_ONCE: Final = StopTimings(grace_s=0.0, drain_s=0.0, finish_s=1.0)
"""Nobody calls it, and what it leaves half done the next look goes on with."""


class CertificateService:
    """All that it is made of; made on the event loop that runs it."""

    def __init__(
        self, access: Access, status: Address, chains: Sequence[Chain], log: Log, *, every_s: float = EVERY_S
    ) -> None:
        self._status = status
        self._log = log
        self._calls = ApiCalls(access)
        self._registry = CollectorRegistry()
        metrics, tell = CertificateMetrics(self._registry, chains), SecretEvents(self._calls, log).tell
        self._tending = ChainsController(ApiStore(self._calls), chains, metrics, tell, log, every_s=every_s)
        self._following = [self._follow(access, place) for place in CONFIGURATIONS]

    def _follow(self, access: Access, place: ObjectPath) -> Informer[dict[str, Any]]:
        """An empty caBundle refuses pods: it is repaired at once, and not at the next look."""
        only = Collection(access, place.collection, dict[str, Any], fields=f"metadata.name={place.name}")
        return Informer(only, listed=self._wake, changed=self._wake, name=f"{kind_of(place)} {place.name}")

    def _wake(self, _: object) -> None:
        self._tending.wake()

    def _problems(self) -> tuple[str, ...]:
        return tuple(filter(None, (each.trouble for each in self._following)))

    async def run(self, lifecycle: Lifecycle) -> None:
        own = (("renew certificates", self._tending.run), report_problems(self._problems, self._log))
        async with run_in_background((*follow_jobs(self._following), *own), self._log):
            await serve(self._listeners(lifecycle), lifecycle=lifecycle, log=self._log, stopping=_AT_ONCE)
        self._calls.close()

    def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        checks = {"certificates": self._tending.why_not_ready}
        health = health_app(checks=checks, lifecycle=lifecycle, registry=self._registry)
        return (Listener(STATUS, self._status.host, self._status.port, health),)
