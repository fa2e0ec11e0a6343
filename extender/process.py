"""The running extender: its two listeners, what follows the cluster, and who leads."""

from __future__ import annotations

import gc
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry

from halfcard import names
from halfcard.placing.node_totals import offers
from halfcard.placing.pod_facts import PodFacts
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.lease.leadership import Leadership
from kube.ledger.ledger_store import FollowedLedgers, LedgerStore
from kube.quota.budget_source import BudgetSource
from serving.address import Address
from serving.background_jobs import Job, beside, report
from serving.certificate_expiry import watch_served
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
from .options import ExtenderOptions, ReplicaOptions
from .packing.policy_cache import PolicyCache
from .packing.policy_refresh import PolicyRefresh
from .packing.workload_stats import WorkloadStats
from .refused.preemption_advice import PreemptionAdvice
from .refused.requeue import Requeue
from .scheduler_api.answer_cache import AnswerCache
from .scheduler_api.handlers import VerbHandlers
from .watches import ClusterWatches

EXTENDER: Final = "extender"
STATUS: Final = "status"


class Extender:
    """All that a running extender is made of; made on the event loop that runs it."""

    def __init__(
        self, access: Access, agreed: ExtenderOptions, place: ReplicaOptions, *, instance: str, namespace: str, log: Log
    ) -> None:
        self._place = place
        self._agreed = agreed
        self._log = log
        self._calls = ApiCalls(access)
        self._learning = WorkloadStats()
        self._watching = ClusterWatches(access, agreed.dialects, agreed.dealings, on_arrival=self._learning.saw)
        self.state = self._watching.state
        self._expectations = PolicyCache(agreed.packing, self._learning.mix, self.state)
        self.answers = AnswerCache(self.state, self._expectations.policy)
        self._leadership = Leadership(
            self._calls,
            namespace=namespace,
            name=names.EXTENDER_SERVICE,
            instance=instance,
            address=place.advertised,
            notes=self._learning.notes,
        )
        self._renewal = self._renewed()
        self._source = BudgetSource(access, self._quotas_changed)
        self._budgets = QuotaReservations(self._source.of, LedgerStore(self._calls, namespace), time.monotonic)
        self._ledgers = FollowedLedgers(access, namespace, self._budgets.saw)
        self._term = ""
        self._counsel = self._advised()
        self._binder = Binder(self.state, self._calls, self._manners(), self._budgets)
        self._waking = Requeue(self.state, self.answers, self._calls, self._budgets)

    def _renewed(self) -> PolicyRefresh:
        return PolicyRefresh(
            self.state,
            self.answers,
            self._learning,
            self._expectations,
            lambda: self._leadership.notes,
            self._leadership.may_decide,
        )

    def _advised(self) -> PreemptionAdvice:
        return PreemptionAdvice(
            self.state,
            self._calls,
            self._log,
            self._leadership.may_decide,
            utc_now,
            self._agreed.evicts,
            self._budgets.limits,
        )

    def _quotas_changed(self) -> None:
        self._budgets.quotas_changed()

    def _manners(self) -> BindRules:
        return BindRules(
            policy_of=self._expectations.policy,
            prefixes=self._agreed.prefixes,
            aliyun_unit_mib=self._agreed.dealings.aliyun_unit_mib,
            now_ns=time.time_ns,
            may_decide=self._leadership.may_decide,
            term=lambda: self._term,
        )

    def _problems(self) -> tuple[str, ...]:
        own = (self._leadership.trouble, self._ledgers.following.trouble)
        return (*filter(None, own), *self._watching.problems(), *self._source.problems())

    def _ready(self) -> bool:
        """Has all been seen once that decides where pods may go?"""
        return self._watching.ready() and self._source.ready and self._ledgers.following.ready

    # --- leading ------------------------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """A new term: a mark that a pod carries already would change nothing, and be taken for ours."""
        self._term = secrets.token_hex(8)
        self._renewal.recall()
        refresh, next_fence = self._watching.pods.refresh, self._binder.next_fence
        await Takeover(self.state, self._calls, refresh, next_fence, self._budgets).run()
        self._log.event("leading", term=self._term)

    async def _lead(self) -> None:
        """Begins when there is something to lead with."""
        await self._watching.wait_until_ready()
        await self._source.wait_until_ready()
        await self._ledgers.following.wait_until_ready()
        self.state.likenesses()  # or the first call would wait for it
        gc.freeze()  # nodes and pods live long: no collection needs to look at them again
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
        watching = self._watching
        budgets = (*self._source.jobs(), self._ledgers.following.run)
        follow: Sequence[Job] = (
            watching.nodes.run,
            watching.pods.run,
            *budgets,
            partial(report, self._problems, self._log),
        )
        own = (self._lead, self._renewal.renew, self._renewal.adapt, self._counsel.run, self._waking.run)
        async with beside((*follow, *own, *jobs), self._log):
            await serve(
                self._listeners(lifecycle), lifecycle=lifecycle, log=self._log, stopping=stopping, on_ready=on_ready
            )
        self._calls.close()

    def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        registry = CollectorRegistry()
        app = extender_app(
            self._scheduling(),
            table=offers(self._agreed.prefixes.values(), self._agreed.dealings.aliyun_unit_mib),
            aliyun_unit_mib=self._agreed.dealings.aliyun_unit_mib,
            metrics=self._metrics(registry),
            log=self._log,
        )
        checks = {"state": lambda: None if self._ready() else "nodes, pods and quotas have not all been seen"}
        health = health_app(checks=checks, lifecycle=lifecycle, registry=registry)
        gc.freeze()
        where = self._place
        return (
            Listener(EXTENDER, where.extender.host, where.extender.port, app, where.tls),
            Listener(STATUS, where.status.host, where.status.port, health),
        )

    def _scheduling(self) -> VerbHandlers:
        return VerbHandlers(
            self.state,
            self.answers,
            self._binder,
            Forwarding(lambda: self._leadership.leader_address, self._place.advertised, self._place.peer_context),
            self._ready,
            self._leadership.may_decide,
            self._place.peers is not None,
            self._hear_of_refused,
        )

    def _hear_of_refused(self, facts: PodFacts, nodes: Sequence[str]) -> None:
        self._waking.refused(facts)
        self._counsel.hear(facts, nodes)

    def _metrics(self, registry: CollectorRegistry) -> ExtenderMetrics:
        metrics = ExtenderMetrics(registry)
        metrics.watch(
            leading=lambda: float(self._leadership.may_decide()),
            nodes=lambda: len(self.state.nodes()),
            doubts=lambda: len(self.state.doubts()),
        )
        if (tls := self._place.tls) is not None:
            watch_served(registry, lambda: tls.leaf.not_after)
        return metrics
