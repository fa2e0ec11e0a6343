"""The running webhook: its two listeners, the informers of the cluster, and the report when a source is degraded."""

from __future__ import annotations

import gc
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry

from halfcard import names
from halfcard.cluster_view import ClusterView
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.api.informer import Informer, follow_jobs
from kube.cluster_source import ClusterSource
from kube.ledger.ledger_store import LedgerStore, LedgerWatch
from kube.quota.budget_source import BudgetSource
from kube.quota.native_quota_source import NativeQuotas
from serving.address import Address
from serving.background_jobs import Job, report_problems, run_in_background
from serving.certificate_expiry import add_expiry_metric
from serving.health_endpoints import health_app
from serving.lifecycle import Lifecycle
from serving.listener import Listener, StopTimings, serve
from serving.log import Log, utc_now
from serving.tls import ReloadingContext

from .endpoint import admission_app
from .entry.callers import ProvenCallers, TokenFile
from .gates import Gate, in_turn
from .metrics import WebhookMetrics
from .policy import AdmissionPolicy
from .quota.budget_ledgers import BudgetLedgers
from .quota.budget_reservation import BudgetReservation
from .quota.live_quotas import CONNECTIONS, LiveQuotas
from .quota.native_precheck import NativePrecheck
from .quota.refusal_events import RefusalEvents
from .quota.scheduling_gate import QueueGate
from .quota.workload_hints import WorkloadHints

ADMISSION: Final = "admission"
STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class WebhookAddresses:
    admission: Address
    status: Address


class QuotaParts:
    """Everything the webhook needs for quotas: GpuQuotas and their ledgers, and ResourceQuotas, which the API server
    enforces.
    """

    def __init__(
        self, access: Access, namespace: str, policy: AdmissionPolicy, cluster: Callable[[], ClusterView], log: Log
    ) -> None:
        calls = ApiCalls(access)
        self.source = BudgetSource(access)
        self.refusals = RefusalEvents(calls, f"{socket.gethostname()}-{secrets.token_hex(3)}", utc_now, log)
        self._ledgers = BudgetLedgers(self.source, LedgerStore(calls, namespace), policy, cluster)
        watch, quotas = LedgerWatch(access, namespace, self._ledgers.update), NativeQuotas(access, policy.counted)
        self._informers: Sequence[Informer[Any]] = (watch.informer, quotas.informer)
        live = LiveQuotas(ApiCalls(access, CONNECTIONS))
        self._precheck = NativePrecheck(quotas, live, policy, self.refusals.refused)

    def gates(self) -> Mapping[str, Gate]:
        """Returns the gates; native quota comes first, since nothing has to be reserved for a pod that it refuses."""
        budgets = BudgetReservation(self._ledgers, self.refusals.refused)
        return {
            names.MUTATE_PODS_PATH: QueueGate(self._ledgers),
            names.VALIDATE_PODS_PATH: in_turn(self._precheck, budgets),
            names.VALIDATE_WORKLOADS_PATH: WorkloadHints(self._ledgers),
        }

    def jobs(self) -> list[Job]:
        return [*self.source.jobs(), *follow_jobs(self._informers), ("report refusals", self.refusals.run)]

    def problems(self) -> tuple[str, ...]:
        troubles = (each.trouble for each in self._informers)
        return (*self.source.problems(), *filter(None, troubles))


@dataclass(frozen=True, slots=True)
class Webhook:
    """Everything a running webhook consists of.

    Attributes:
        tokens: those that callers must show; None where the TLS context requires a client certificate.
        budgets: None where no quota is enforced.
        beside: listeners of another service in the same process.
    """

    policy: AdmissionPolicy
    source: ClusterSource
    tls: ReloadingContext
    addresses: WebhookAddresses
    stopping: StopTimings
    log: Log
    tokens: TokenFile | None
    budgets: QuotaParts | None = None
    beside: Sequence[Listener] = ()

    async def run(
        self,
        lifecycle: Lifecycle,
        *,
        on_ready: Callable[[Mapping[str, Address]], None] | None = None,
        jobs: Sequence[Job] = (),
    ) -> None:
        """Serves until the process is asked to stop; `jobs` run at the same time."""
        own: Sequence[Job] = (
            ("follow the cluster", self.source.watch),
            *(() if self.tokens is None else (("read caller tokens", partial(self.tokens.watch, self.log)),)),
            *(self.budgets.jobs() if self.budgets is not None else ()),
            report_problems(self._problems, self.log),
        )
        async with run_in_background((*own, *jobs), self.log):
            await serve(
                self._listeners(lifecycle),
                lifecycle=lifecycle,
                log=self.log,
                stopping=self.stopping,
                on_ready=on_ready,
            )

    def _problems(self) -> tuple[str, ...]:
        budgets = self.budgets.problems() if self.budgets is not None else ()
        return (*self.source.problems(), *budgets)

    def _gates(self) -> Mapping[str, Gate]:
        return {} if self.budgets is None else self.budgets.gates()

    def _unready(self) -> str | None:
        unseen = self.budgets is not None and not self.budgets.source.ready
        return "not all quotas have been listed yet" if unseen else None

    def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        """Readiness does not wait for the nodes: while no card is known, only the size of cards is not checked."""
        registry = CollectorRegistry()
        metrics = WebhookMetrics(registry)
        add_expiry_metric(registry, lambda: self.tls.leaf.not_after)
        if self.budgets is not None:
            self.budgets.refusals.counted = metrics.refused
        app = admission_app(
            policy=self.policy, cluster=self.source.view, metrics=metrics, log=self.log, gates=self._gates()
        )
        if self.tokens is not None:
            app = ProvenCallers(app, self.tokens, metrics, self.log)
        health = health_app(checks={"quotas": self._unready}, lifecycle=lifecycle, registry=registry)
        gc.freeze()  # objects made at start-up live as long as the process: no collection has to visit them
        where = self.addresses
        return (
            Listener(ADMISSION, where.admission.host, where.admission.port, app, self.tls),
            *self.beside,
            Listener(STATUS, where.status.host, where.status.port, health),
        )
