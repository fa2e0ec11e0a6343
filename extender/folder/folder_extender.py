"""kube-scheduler's calls with a folder of manifests instead of an API server: binds are written to the pods' files.

Invariant: a bind holds the lock of the folder, and reads the folder before it chooses cards. A folder with a mistake
takes no bind, because a pod that cannot be read may hold cards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

import msgspec
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from halfcard import names
from halfcard.placing.node_totals import offers
from halfcard.pod.stored_pod import StoredPod
from halfcard.problems import printable
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import LedgerStore
from kube.manifests.documents import Document, ManifestError, to_json
from kube.manifests.folder_source import FolderSource
from kube.manifests.gather import by_name
from serving.log import Log, utc_now
from serving.shared_folder import BusyFolderError, locked

from ..app import extender_app
from ..bind.binder import Binder, BindRules, NotBound
from ..bind.forwarding import Forwarding
from ..bind.pod_requests import BindCall
from ..bind.quota_reservations import QuotaReservations
from ..metrics import ExtenderMetrics
from ..options import ExtenderOptions
from ..packing.policy_cache import PolicyCache
from ..packing.workload_stats import WorkloadStats
from ..scheduler_api.answer_cache import AnswerCache
from ..scheduler_api.contact_log import ContactLog
from ..scheduler_api.handlers import VerbHandlers
from ..state import State
from .folder_pods import FolderPods, as_stored

_NODE, _POD = "Node", "Pod"
_DECODER: Final = msgspec.json.Decoder(StoredPod)


class FolderExtender:
    """An ASGI application.

    Raises:
        ManifestError: a pod cannot be read at the start.
    """

    def __init__(self, source: FolderSource, options: ExtenderOptions, log: Log) -> None:
        self._source = source
        self._options = options
        self._log = log
        self._metrics = ExtenderMetrics(CollectorRegistry())
        self._pods = FolderPods()
        self._turn = asyncio.Lock()
        self._read: Sequence[Document] = ()
        self._mistake: str | None = None
        self._load(source.documents)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.update()
        await self._app(scope, receive, send)

    def problems(self) -> tuple[str, ...]:
        self.update()
        return (*filter(None, (self._mistake,)), *self.state.inconsistencies())

    def update(self) -> None:
        """Builds the state again if the folder has changed; keeps the last one while a pod cannot be read."""
        if self._read is self._source.documents:
            return
        try:
            self._load(self._source.documents)
            self._mistake = None
        except ManifestError as mistake:
            self._mistake = str(mistake)

    def _load(self, documents: Sequence[Document]) -> None:
        self._read = documents
        pods = by_name(documents, frozenset({_POD}))[_POD]
        stored = [_decoded(document) for document in pods.values()]
        self._pods.known = pods
        self._rebuild([document for document in documents if document.kind == _NODE], stored)

    def _rebuild(self, nodes: Sequence[Document], pods: Sequence[StoredPod]) -> None:
        """A new state each time: a pod of a folder may come back with the uid of one that was deleted."""
        options, stats = self._options, WorkloadStats()
        self.state = State(options.dialects, options.capacity_rules, stats.observe)
        self.state.replace_nodes(_plain(node) for node in nodes)
        self.state.replace_pods(pods)
        policies = PolicyCache(options.packing, stats.mix, self.state, options.strengths)
        rules = BindRules(policies.policy, options.dialects, time.time_ns, _always, str)
        binder = self._binder = Binder(self.state, self._pods, rules, _no_budgets())
        self._app = self._application(AnswerCache(self.state, policies.policy), FolderBinder(self, binder.budgets))

    def _application(self, answers: AnswerCache, binder: FolderBinder) -> ASGIApp:
        handlers = VerbHandlers(
            self.state,
            answers,
            binder,
            Forwarding(lambda: None, "", _no_tls),
            ready=_always,
            may_decide=_always,
            is_mutual=False,
            on_unschedulable=lambda _facts, _nodes: None,
            contact=ContactLog(utc_now, frozenset, lambda _why: None),
        )
        table, unit = offers(self._options.dialects.known), self._options.capacity_rules.aliyun_unit_mib
        return extender_app(handlers, table=table, aliyun_unit_mib=unit, metrics=self._metrics, log=self._log)

    async def bind(self, call: BindCall) -> None:
        """Binds by the folder as it is now; see Binder.bind."""
        async with self._turn:
            with ExitStack() as held:
                try:
                    await asyncio.to_thread(held.enter_context, locked(self._source.folder))
                except (BusyFolderError, OSError) as error:
                    raise NotBound(f"folder {self._source.folder}: {error}") from None
                await asyncio.to_thread(self._source.refresh)
                self.update()
                if mistake := self._source.mistake or self._mistake:
                    raise NotBound(f"nothing is bound while the folder has a mistake: {mistake}")
                await self._binder.bind(call)


class FolderBinder:
    """Implements Binds: each bind by the state at its turn."""

    def __init__(self, extender: FolderExtender, budgets: QuotaReservations) -> None:
        self.budgets = budgets
        self._extender = extender

    async def bind(self, call: BindCall) -> None:
        await self._extender.bind(call)


def _decoded(document: Document) -> StoredPod:
    try:
        return _DECODER.decode(as_stored(document))
    except msgspec.MsgspecError as error:
        raise document.refused(f"the pod cannot be read: {printable(str(error))}", "correct that field") from None


def _plain(document: Document) -> Mapping[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(to_json(document.obj))
    return found


def _no_budgets() -> QuotaReservations:
    """A folder has no ledgers, so that GpuQuotas are not enforced."""
    return QuotaReservations(
        lambda _namespace: (), LedgerStore(ApiCalls(Access("", 0)), names.NAMESPACE), time.monotonic
    )


def _always() -> bool:
    return True


def _no_tls() -> Any:
    raise AssertionError("a folder has no other replica")
