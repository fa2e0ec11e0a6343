"""The running extender: its two listeners, its watches, and the work of a leader."""

from __future__ import annotations

import gc
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry

from halfcard import names
from halfcard.placing.node_totals import offers
from halfcard.placing.pod_facts import PodFacts
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.api.informer import follow_jobs
from kube.driver_watches import DriverWatches
from kube.lease.leadership import Leadership
from kube.ledger.ledger_store import LedgerStore, LedgerWatch
from kube.quota.budget_source import BudgetSource
from serving.address import Address
from serving.background_jobs import Job, report_problems, run_in_background
from serving.certificate_expiry import add_expiry_metric, days_left
from serving.health_endpoints import health_app
from serving.lifecycle import Lifecycle
from serving.listener import Listener, StopTimings, serve
from serving.log import Log, utc_now

from .app import extender_app
from .bind.binder import Binder, BindRules
from .bind.forwarding import Forwarding
from .bind.quota_reservations import QuotaReservations
from .bind.takeover import Takeover
from .metrics import ExtenderMetrics
from .misuse_evictions import MisuseEvictions
from .options import ExtenderOptions, ReplicaOptions
from .packing.policy_cache import PolicyCache
from .packing.policy_refresh import PolicyRefresh
from .packing.workload_stats import WorkloadStats
from .refused.preemption_advice import PreemptionAdvice
from .refused.requeue import Requeue
from .refused.untried_pods import UntriedPods
from .scheduler_api.answer_cache import AnswerCache
from .scheduler_api.contact_log import ContactLog
from .scheduler_api.contact_publisher import ContactPublisher
from .scheduler_api.handlers import VerbHandlers
from .watches import ClusterWatches

EXTENDER: Final = "extender"
STATUS: Final = "status"


class Extender:
    """The parts of a running extender; create it on the event loop that runs it."""

    def __init__(
        self,
        access: Access,
        options: ExtenderOptions,
        replica: ReplicaOptions,
        *,
        instance: str,
        namespace: str,
        log: Log,
    ) -> None:
        self._replica = replica
        self._options = options
        self._log = log
        self._calls = ApiCalls(access)
        self._registry = CollectorRegistry()
        self._metrics = ExtenderMetrics(self._registry)
        self._contact = ContactLog(utc_now, self._own_names, self._metrics.handshake_failed)
        self._publisher = ContactPublisher(self._calls, namespace, self._contact)
        self._stats = WorkloadStats()
        self._leadership = Leadership(
            self._calls,
            namespace=namespace,
            name=names.EXTENDER_SERVICE,
            instance=instance,
            address=replica.advertised,
            notes=self._stats.notes,
        )
        self._misuse = MisuseEvictions(self._calls, log, self._leadership.may_decide, options.exempt, utc_now)
        self._watches = self._cluster_watches(access)
        self.state = self._watches.state
        self._driver_watches = DriverWatches(access, self.state.driver_nodes)
        self._policies = PolicyCache(options.packing, self._stats.mix, self.state, options.strengths)
        self.answers = AnswerCache(self.state, self._policies.policy)
        self._refresh = self._policy_refresh()
        self._source = BudgetSource(access, self._quotas_changed)
        self._budgets = QuotaReservations(self._source.of, LedgerStore(self._calls, namespace), time.monotonic)
        self._ledgers = LedgerWatch(access, namespace, self._budgets.on_ledger_change)
        self._term = ""
        self._advice = self._preemption_advice()
        self._binder = Binder(self.state, self._calls, self._bind_rules(), self._budgets)
        self._requeue = Requeue(self.state, self.answers, self._calls, self._budgets)
        self._untried = UntriedPods(
            access, self.state, self._calls, log, options.schedulers, self._leadership.may_decide, utc_now
        )

    def _cluster_watches(self, access: Access) -> ClusterWatches:
        options = self._options
        return ClusterWatches(
            access,
            options.dialects,
            options.capacity_rules,
            on_arrival=self._stats.observe,
            on_pod=self._misuse.observe if options.evicts_misuse else lambda _: None,
        )

    def _policy_refresh(self) -> PolicyRefresh:
        return PolicyRefresh(
            self.state,
            self.answers.policy_changed,
            self._stats,
            self._policies,
            lambda: self._leadership.notes,
            self._leadership.may_decide,
        )

    def _preemption_advice(self) -> PreemptionAdvice:
        return PreemptionAdvice(
            self.state,
            self._calls,
            self._log,
            self._leadership.may_decide,
            utc_now,
            self._options.evicts,
            self._budgets.limits,
        )

    def _quotas_changed(self) -> None:
        self._budgets.quotas_changed()

    def _bind_rules(self) -> BindRules:
        return BindRules(
            policy_of=self._policies.policy,
            dialects=self._options.dialects,
            now_ns=time.time_ns,
            may_decide=self._leadership.may_decide,
            term=lambda: self._term,
        )

    def _problems(self) -> tuple[str, ...]:
        own = (self._leadership.trouble, self._ledgers.informer.trouble, self._publisher.trouble)
        watches = (self._watches, self._driver_watches, self._source)
        return (*filter(None, own), *(each for watch in watches for each in watch.problems()))

    def _ready(self) -> bool:
        """Returns whether nodes, pods, quotas and ledgers have been read once."""
        return self._watches.ready() and self._source.ready and self._ledgers.informer.ready

    # --- leading ------------------------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """Begins a term with a new prefix of fences: a fence that a pod has already would change nothing."""
        self._term = secrets.token_hex(8)
        self._refresh.load()
        refresh, next_fence = self._watches.pods.refresh, self._binder.next_fence
        await Takeover(self.state, self._calls, refresh, next_fence, self._budgets).run()
        self._log.event("leading", term=self._term)

    async def _lead(self) -> None:
        """Competes for the Lease once the state is complete."""
        await self._watches.wait_until_ready()
        await self._source.wait_until_ready()
        await self._ledgers.informer.wait_until_ready()
        gc.freeze()  # nodes and pods live long: garbage collection need not read them again
        await self._leadership.run(self._take_over)

    # --- serving ------------------------------------------------------------------------------------------------------

    async def run(
        self,
        lifecycle: Lifecycle,
        stopping: StopTimings,
        *,
        on_ready: Callable[[Mapping[str, Address]], None] | None = None,
        jobs: Sequence[Job] = (),
    ) -> None:
        watching = self._watches
        own: Sequence[Job] = (
            *follow_jobs((watching.nodes, watching.pods, self._ledgers.informer, *self._driver_watches.informers)),
            *self._source.jobs(),
            report_problems(self._problems, self._log),
            ("lead", self._lead),
            ("publish the scheduler's calls", self._publisher.run),
            ("refresh packing policies", self._refresh.refresh),
            ("adapt packing policies", self._refresh.adapt),
            ("advise on preemption", self._advice.run),
            ("requeue pods", self._requeue.run),
            ("report pods that no scheduler tries", self._untried.run),
            ("evict pods that misuse cards", self._misuse.run),
        )
        async with run_in_background((*own, *jobs), self._log):
            await serve(
                self._listeners(lifecycle), lifecycle=lifecycle, log=self._log, stopping=stopping, on_ready=on_ready
            )
        self._calls.close()

    def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        self._watch_figures()
        app = extender_app(
            self._scheduling(),
            table=offers(self._options.dialects.known),
            aliyun_unit_mib=self._options.capacity_rules.aliyun_unit_mib,
            metrics=self._metrics,
            log=self._log,
        )
        checks = {"state": lambda: None if self._ready() else "nodes, pods and quotas have not all been read"}
        health = health_app(checks=checks, lifecycle=lifecycle, registry=self._registry)
        gc.freeze()
        where = self._replica
        return (
            Listener(EXTENDER, where.extender.host, where.extender.port, app, where.tls, handshakes=self._contact),
            Listener(STATUS, where.status.host, where.status.port, health),
        )

    def _scheduling(self) -> VerbHandlers:
        return VerbHandlers(
            self.state,
            self.answers,
            self._binder,
            Forwarding(
                lambda: self._leadership.leader_address, self._replica.advertised, self._replica.replica_context
            ),
            self._ready,
            self._leadership.may_decide,
            self._replica.replica_ca is not None,
            self._on_unschedulable,
            self._contact,
        )

    def _on_unschedulable(self, facts: PodFacts, nodes: Sequence[str]) -> None:
        self._requeue.add(facts)
        self._advice.enqueue(facts, nodes)

    def _own_names(self) -> frozenset[str]:
        return frozenset(self._replica.tls.leaf.names if self._replica.tls is not None else ())

    def _watch_figures(self) -> None:
        self._metrics.watch(
            leading=lambda: float(self._leadership.may_decide()),
            nodes=lambda: len(self.state.nodes()),
            inconsistencies=lambda: len(self.state.inconsistencies()),
        )
        if (tls := self._replica.tls) is not None:
            add_expiry_metric(self._registry, lambda: tls.leaf.not_after)
            self._metrics.watch_callers(self._callers_days_left)

    def _callers_days_left(self) -> float:
        first = self._contact.contact.first_end
        return math.nan if first is None else days_left(first, utc_now())
