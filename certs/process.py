"""The running certificate controller; any number of replicas, without a leader."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry

from certs.chain_state import kind_of
from certs.chains import CONFIGURATIONS, Chain, ObjectPath
from certs.change_events import report, report_registration
from certs.controller import EVERY_S, ChainsController
from certs.metrics import CertificateMetrics
from certs.scheduler_restart import SchedulerRestart
from certs.store import ApiStore
from certs.tokens.token_plan import IN_AN_INSTALLATION, TokenRules
from certs.tokens.token_rotation import TokenRotation, callers_secret
from certs.webhooks.registration import RegisteredWebhooks, WebhookRegistration, slices_path
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.api.informer import Informer, follow_jobs
from kube.api.list_watch import Collection
from serving.address import Address
from serving.background_jobs import report_problems, run_in_background
from serving.health_endpoints import health_app
from serving.lifecycle import Lifecycle
from serving.listener import Listener, StopTimings, serve
from serving.log import Log, utc_now

STATUS: Final = "status"
_AT_ONCE: Final = StopTimings(grace_s=0.0, drain_s=0.0, finish_s=1.0)
"""Stops without delay: it has no callers, and the next pass completes an interrupted one."""


class CertificateService:
    """The parts of the process; created on the event loop that runs it."""

    def __init__(
        self,
        access: Access,
        status: Address,
        chains: Sequence[Chain],
        log: Log,
        *,
        registered: RegisteredWebhooks,
        token_rules: TokenRules = IN_AN_INSTALLATION,
        every_s: float = EVERY_S,
    ) -> None:
        self._status = status
        self._log = log
        self._calls = ApiCalls(access)
        self._registry = CollectorRegistry()
        metrics, on_change = CertificateMetrics(self._registry, chains), partial(report, self._calls, log)
        store = ApiStore(self._calls)
        self._registration = WebhookRegistration(
            store,
            self._calls,
            TokenRotation(store, callers_secret(registered.namespace), log, token_rules),
            registered,
            self._report_write,
            log,
        )
        self._namespace = registered.namespace
        self._metrics = metrics
        self._restart = SchedulerRestart(store, registered.namespace, log) if chains else None
        self._controller = ChainsController(
            store, chains, metrics, on_change, log, every_s=every_s, after=self._after_certificates
        )
        self._informers = [self._follow(access, place) for place in CONFIGURATIONS]
        slices = Collection(access, slices_path(registered.namespace), dict[str, Any])
        self._informers.append(Informer(slices, listed=self._wake, changed=self._wake, name="endpointslices"))

    def _follow(self, access: Access, place: ObjectPath) -> Informer[dict[str, Any]]:
        """Follows one webhook configuration: an empty caBundle refuses pods, so it is repaired at once."""
        only = Collection(access, place.collection, dict[str, Any], fields=f"metadata.name={place.name}")
        return Informer(only, listed=self._wake, changed=self._wake, name=f"{kind_of(place)} {place.name}")

    async def _after_certificates(self) -> None:
        await self._registration.reconcile()
        if self._restart is not None:
            await self._restart.reconcile()

    async def _report_write(self, place: ObjectPath, reason: str) -> None:
        self._metrics.record_change(place)
        message = f"{kind_of(place)} {place.name}: {reason}"
        await report_registration(self._calls, self._log, self._namespace, message=message, now=utc_now())

    def _wake(self, _: object) -> None:
        self._controller.wake()

    def _problems(self) -> tuple[str, ...]:
        return tuple(filter(None, (each.trouble for each in self._informers)))

    async def run(self, lifecycle: Lifecycle) -> None:
        own = (("renew certificates", self._controller.run), report_problems(self._problems, self._log))
        async with run_in_background((*follow_jobs(self._informers), *own), self._log):
            await serve(self._listeners(lifecycle), lifecycle=lifecycle, log=self._log, stopping=_AT_ONCE)
        self._calls.close()

    def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        checks = {
            "certificates": self._controller.why_not_ready,
            "registration": self._registration.why_not_ready,
        }
        health = health_app(checks=checks, lifecycle=lifecycle, registry=self._registry)
        return (Listener(STATUS, self._status.host, self._status.port, health),)
