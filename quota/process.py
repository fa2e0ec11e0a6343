"""The running quota service: what it follows, which replica leads, and what is settled."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry

from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.pod.stored_pod import StoredPod
from halfcard.quota.derived_resources import DerivedSettings
from halfcard.quota.ledger import Entry, is_bind_reservation, pod_uid
from kube.api.access import Access
from kube.api.calls import ApiCalls, NoAnswerError
from kube.api.informer import Informer, follow_jobs
from kube.lease.leadership import Leadership
from kube.ledger.ledger_store import LedgerStore, LedgerWatch, WatchedLedger
from kube.ledger.ledger_writers import LedgerWriters
from kube.quota.budget_source import BudgetSource
from serving.address import Address
from serving.background_jobs import Job, report_problems, run_in_background
from serving.health_endpoints import health_app
from serving.lifecycle import Lifecycle
from serving.listener import Listener, StopTimings, serve
from serving.log import Log

from .amount_metrics import AmountMetrics, named_ledgers
from .charged_pods import ChargedPods, Touched
from .consistency_check import ConsistencyCheck
from .gates.gate_admission import GateAdmission
from .gates.impossible_pods import ImpossiblePods
from .gates.owner_retry import OwnerRetry
from .gates.waiting_reports import WaitingReports
from .ledger_controller import LedgerController
from .ledgers_controller import LedgersController
from .metrics import watch
from .native.native_checks import NativeQuotaChecks
from .node_locations import NodeLocations
from .reporting.exemption_reports import ExemptionReports
from .reporting.quota_events import QuotaEvents
from .reporting.repair_reports import RepairReports
from .reporting.report_job import ReportJob
from .reporting.status_writer import StatusWriter
from .reporting.tke_map_reports import TkeMapReports
from .reporting.usage_objects import UsageObjects
from .reporting.usage_writer import UsageWriter
from .turns_store import TurnsStore

STATUS: Final = "status"
_POD: Final = msgspec.json.Decoder(StoredPod)
_AT_ONCE: Final = StopTimings(grace_s=0.0, drain_s=0.0, finish_s=1.0)
"""Stops without delay: it has no callers, and an early release of the Lease shortens the change of leader."""


class QuotaOptions(NamedTuple):
    """The settings of the installation that concern quotas."""

    dialects: Dialects
    capacity: CapacityRules
    repairs_native: bool = False
    derived: DerivedSettings = DerivedSettings()


class QuotaService:
    """The parts of the service; created on the event loop that runs it."""

    def __init__(
        self, access: Access, options: QuotaOptions, status: Address, *, instance: str, namespace: str, log: Log
    ) -> None:
        self._status = status
        self._log = log
        self._calls = ApiCalls(access)
        self._leadership = Leadership(
            self._calls, namespace=namespace, name=names.QUOTA_SERVICE, instance=instance, address="", notes=dict
        )
        self._source = BudgetSource(access, self._quotas_changed)
        self._nodes = NodeLocations(access, options.capacity, self._nodes_changed)
        self._pods = ChargedPods(access, options.dialects, self._nodes.get, self._pods_changed, self._nodes.answers)
        may_decide = self._leadership.may_decide
        self._owner_retry = OwnerRetry(self._calls, options.dialects, may_decide, log)
        events = QuotaEvents(self._calls)
        self._repairs = RepairReports(events, self._source.of)
        ledgers = LedgerStore(self._calls, namespace)
        self._controller = self._new_controller(ledgers)
        self._consistency_check = ConsistencyCheck(access, self._pods, options.dialects, may_decide, self._repairs.pods)
        self._watch = LedgerWatch(access, namespace, self._ledger_changed)
        self._writers = LedgerWriters(ledgers, time.monotonic)
        self._waiting_reports = WaitingReports(events, may_decide, time.monotonic)
        self._gate_admission = self._new_gate_admission()
        self._usages = UsageObjects(access)
        self._turns = TurnsStore(self._calls, self._pods.workload_turns, self._may_gate, may_decide, namespace)
        self._exemptions = ExemptionReports(self._controller, events, may_decide)
        self._reports = self._new_reports(events)
        self._native = NativeQuotaChecks(
            access,
            self._calls,
            options.dialects,
            may_decide,
            log,
            repairs_at_start=options.repairs_native,
            added=options.derived.resources,
        )

    def _new_controller(self, ledgers: LedgerStore) -> LedgersController:
        return LedgersController(
            self._source,
            self._pods,
            ledgers,
            self._leadership.may_decide,
            self._log,
            freed=self._owner_retry.freed,
            repaired=self._repairs.ledger,
        )

    def _new_gate_admission(self) -> GateAdmission:
        return GateAdmission(
            calls=self._calls,
            pods=self._pods,
            budgets_of=self._source.of,
            ledgers=self._controller,
            writer_of=self._writers.of,
            impossible=ImpossiblePods(self._source.reach, self._nodes.could_take),
            reports=self._waiting_reports,
            may_decide=self._leadership.may_decide,
            log=self._log,
        )

    def _new_reports(self, events: QuotaEvents) -> Mapping[str, ReportJob]:
        may_decide = self._leadership.may_decide
        return {
            "write statuses": StatusWriter(
                self._calls,
                self._controller,
                self._gate_admission.waits,
                lambda: self._gate_admission.queues,
                may_decide,
            ),
            "write usages for members": UsageWriter(
                self._calls,
                self._source,
                self._controller,
                self._usages,
                self._gate_admission.waits_by_namespace,
                may_decide=may_decide,
                now=time.monotonic,
            ),
            "report on the quota ConfigMap": TkeMapReports(self._source.map, events, may_decide),
            "end exemptions": self._exemptions,
            "report repairs": self._repairs,
            "report what pods wait for": self._waiting_reports,
            "store turns": self._turns,
        }

    def _quotas_changed(self) -> None:
        self._controller.quotas_changed()
        self._gate_admission.trigger()

    def _ledger_changed(self, name: str, seen: WatchedLedger | None) -> None:
        self._controller.ledger_changed(name, seen)
        self._writers.ledger_changed(name, seen)
        self._gate_admission.trigger()

    def _nodes_changed(self) -> None:
        self._controller.nodes_changed()
        self._pods.review(time.time())
        self._gate_admission.trigger()

    def _pods_changed(self, touched: Touched) -> None:
        self._controller.pods_changed(touched)
        self._gate_admission.trigger()

    async def _is_stored(self, entry: Entry, reservation: str) -> bool:
        answer = await self._calls.get(f"/api/v1/namespaces/{entry.namespace}/pods/{entry.pod}")
        if answer.status == HTTPStatus.NOT_FOUND:
            return False
        if answer.status != HTTPStatus.OK:
            raise NoAnswerError(f"the API server answered {answer.status} to the read of a pod")
        return _is_used(reservation, _POD.decode(answer.body))

    async def _lead(self) -> None:
        await self._source.wait_until_ready()
        await self._nodes.informer.wait_until_ready()
        await self._pods.informer.wait_until_ready()
        await self._watch.informer.wait_until_ready()
        gc.freeze()
        await self._leadership.run(self._take_over)

    async def _take_over(self) -> None:
        await self._turns.restore()
        await self._controller.take_over()

    def _may_gate(self, namespace: str) -> bool:
        return any(budget.gates for budget in self._source.of(namespace))

    def _problems(self) -> tuple[str, ...]:
        followed = [each.trouble for each in (*self._following(), *self._others())]
        own = (
            self._leadership.trouble,
            self._controller.trouble,
            self._consistency_check.trouble,
            *[each.trouble for each in self._reports.values()],
        )
        return (*filter(None, (*own, *followed)), *self._source.problems(), *self._native.problems())

    def _controllers(self) -> Iterable[LedgerController]:
        return self._controller.controllers.values() if self._leadership.may_decide() else ()

    def _ready(self) -> bool:
        return self._source.ready and all(each.ready for each in self._following())

    def _following(self) -> Sequence[Informer[Any]]:
        return self._nodes.informer, self._pods.informer, self._watch.informer

    def _others(self) -> Sequence[Informer[Any]]:
        """Returns what nothing waits for."""
        return self._usages.informer, *self._nodes.driver_watches.informers

    async def run(self, lifecycle: Lifecycle) -> None:
        informers = (*self._following(), *self._others())
        follow: Sequence[Job] = (*self._source.jobs(), *follow_jobs(informers), *self._native.jobs())
        keep: Sequence[Job] = (
            ("update ledgers", self._controller.run),
            ("expire reservations", partial(self._controller.expire, time.monotonic, self._is_stored)),
            ("review deleted pods", self._pods.review_deleted),
            ("retry owners", self._owner_retry.run),
            ("admit gated pods", self._gate_admission.run),
            ("check consistency", self._consistency_check.run),
            *[(name, each.run) for name, each in self._reports.items()],
            ("lead", self._lead),
            report_problems(self._problems, self._log),
        )
        async with run_in_background((*follow, *keep), self._log):
            await serve(self._listeners(lifecycle), lifecycle=lifecycle, log=self._log, stopping=_AT_ONCE)
        self._calls.close()

    def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        registry = CollectorRegistry()
        watch(
            registry,
            leading=lambda: float(self._leadership.may_decide()),
            controllers=self._controllers,
            exempt=self._exemptions.count,
            repaired=lambda: self._repairs.count,
        )
        AmountMetrics(registry, lambda: named_ledgers(self._controllers()))
        self._native.watch(registry)
        checks = {"state": lambda: None if self._ready() else "quotas, nodes, pods and ledgers are not all listed yet"}
        health = health_app(checks=checks, lifecycle=lifecycle, registry=registry)
        return (Listener(STATUS, self._status.host, self._status.port, health),)


def _is_used(reservation: str, pod: StoredPod) -> bool:
    """Returns whether the pod of a reservation is stored, or bound; a gated pod does not use its reservation yet."""
    if pod.meta.uid != pod_uid(reservation):
        return False
    return bool(pod.node) if is_bind_reservation(reservation) else not pod.waits_for_quota
