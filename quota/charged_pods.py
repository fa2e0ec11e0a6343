"""Follows the pods of the cluster that have a charge.

A pod that hangs in its deletion on a node that does not answer is not charged: it is deleted, the time is over in which
a node ends it, and the node is not Ready or gone. It is charged again as soon as the node answers.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from halfcard.cards import Node
from halfcard.claims import Need
from halfcard.dialects import Dialects
from halfcard.placing.demand import needs_of
from halfcard.placing.records import Named, read
from halfcard.pod.card_preferences import NOTHING_WANTED, CardPreferences, read_preferences
from halfcard.pod.requests import read_pod
from halfcard.pod.stored_pod import StoredPod
from halfcard.quota.budgets import Budget
from halfcard.quota.charge import charge
from halfcard.quota.gpu_quota import Labels
from halfcard.quota.ledger import Amounts, Entry
from halfcard.quota.pod_location import PodLocation, recorded_location
from halfcard.quota.turns import Member, Turn, Workload
from kube.api import list_watch
from kube.api.access import Access
from kube.api.informer import Informer
from kube.api.list_watch import Undecodable, WatchEvent, decoded

from .usage_index import CountedPod
from .workload_turns import WorkloadTurns

_PODS: Final = "/api/v1/pods"
_PAGE: Final = 500
_MOST_ENDED: Final = 20_000
_REVIEW_S: Final = 5.0


class ChargedPod(NamedTuple):
    """
    Attributes:
        named: the cards that its record names, where it has a node.
        gates: its scheduling gates, where one of them is ours; only then `priority`,
            `version` and `wanted` are set.
        workload: what replaces it by a rollout, where it has a controller.
        revision: that of its template.
        gone_by_s: when it should have been gone, for a deleted one.
    """

    namespace: str
    name: str
    labels: Labels
    charge: Amounts
    needs: tuple[Need, ...] = ()
    node: str = ""
    named: Named | None = None
    priority: int = 0
    created: str = ""
    gates: tuple[str, ...] = ()
    version: str = ""
    wanted: CardPreferences = NOTHING_WANTED
    workload: Workload | None = None
    revision: str = ""
    gone_by_s: float | None = None

    @property
    def member(self) -> Member:
        return Member(self.revision, self.created, self.created, self.charge)

    def hangs(self, now_s: float, answers: Callable[[str], bool]) -> bool:
        """Returns whether its deletion is overdue and its node does not answer."""
        return self.gone_by_s is not None and now_s > self.gone_by_s and bool(self.node) and not answers(self.node)

    def location(self, node: Node) -> PodLocation:
        return recorded_location(node, self.needs, self.named)


NodeOf = Callable[[str], Node | None]
"""Returns a node by its name; None if it is not known yet."""

Touched = Mapping[str, Collection[str]]
"""Changed pods, by namespace."""


class ChargedPods:
    """The pods by uid, while `informer` runs; calls `changed` with the pods that have changed."""

    def __init__(
        self,
        access: Access,
        dialects: Dialects,
        nodes: NodeOf,
        changed: Callable[[Touched], None],
        answers: Callable[[str], bool] = lambda _node: True,
    ) -> None:
        self._nodes = nodes
        self._answers = answers
        self._deleted: dict[str, ChargedPod] = {}
        self._hanging: frozenset[str] = frozenset()
        self._dialects = dialects
        self._changed = changed
        self._pods: dict[str, ChargedPod] = {}
        self._by_namespace: dict[str, dict[str, ChargedPod]] = {}
        self._waiting: dict[str, ChargedPod] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.workload_turns = WorkloadTurns(time.time)
        self.informer = Informer(pod_collection(access), listed=self._list, changed=self._change, name="pods")

    def counted_pod(self, uid: str, budget: Budget, concerned: Callable[[str], bool]) -> CountedPod | None:
        """Returns what the budget counts of this pod; None where the pod is gone, gated, in a namespace that is not
        covered, or hangs in its deletion on a node that does not answer.
        """
        pod = self._pods.get(uid)
        if pod is None or pod.gates or uid in self._hanging or not concerned(pod.namespace):
            return None
        cost, at = budget.counted(pod.charge, pod.labels), self._cost_at(budget, pod)
        return CountedPod(Entry(pod.namespace, pod.name, {**cost, **(at or {})}), is_bound=at is not None)

    def uids_in(self, namespace: str) -> Iterable[str]:
        """Returns the uids of the charged pods of a namespace, or of all if it is empty."""
        return self._by_namespace.get(namespace, ()) if namespace else self._pods

    def waiting(self) -> Mapping[str, ChargedPod]:
        """Returns the pods behind our gate, by uid, at this moment."""
        return dict(self._waiting)

    def turns(self) -> Mapping[str, Turn]:
        """Returns the turns of the pods behind our gate that have a workload, by uid."""
        members: dict[Workload, dict[str, Member]] = {}
        for uid, pod in self._waiting.items():
            if pod.workload is not None:
                members.setdefault(pod.workload, {})[uid] = pod.member
        found = [self.workload_turns.of(workload, waiting) for workload, waiting in members.items()]
        return {uid: turn for each in found for uid, turn in each.items()}

    def _cost_at(self, budget: Budget, pod: ChargedPod) -> Amounts | None:
        """Returns the charge by location; None for an unknown node: the reservation of the bind then stays open."""
        node = self._nodes(pod.node) if pod.node and budget.depends_on_location else None
        return None if node is None else budget.counted_at(pod.location(node))

    def all(self) -> Mapping[str, ChargedPod]:
        """Returns all charged pods at this moment, by uid."""
        return dict(self._pods)

    def has_ended(self, uid: str) -> bool:
        """Returns whether the pod was stored and has ended; the latest thousands are remembered."""
        return uid in self._ended

    async def review_deleted(self) -> None:
        """Charges pods that hang on dead nodes no longer, and again once their node answers."""
        while True:
            self.review(time.time())
            self.workload_turns.forget_old()
            await asyncio.sleep(_REVIEW_S)

    def review(self, now_s: float) -> None:
        hanging = frozenset(uid for uid, pod in self._deleted.items() if pod.hangs(now_s, self._answers))
        differ, self._hanging = hanging ^ self._hanging, hanging
        touched: dict[str, set[str]] = {}
        for uid in differ & self._pods.keys():
            touched.setdefault(self._pods[uid].namespace, set()).add(uid)
        if touched:
            self._changed(touched)

    def _list(self, pods: Sequence[StoredPod | Undecodable]) -> None:
        before = self._by_namespace
        self._pods.clear()
        self._by_namespace = {}
        self._waiting.clear()
        self._deleted.clear()
        for pod in pods:
            if isinstance(pod, StoredPod):
                self._put(pod)
        self.workload_turns.keep(self._pods.keys() - self._waiting.keys())
        after = self._by_namespace
        self._changed({each: {*before.get(each, ()), *after.get(each, ())} for each in before.keys() | after.keys()})

    def _change(self, changes: Sequence[WatchEvent[StoredPod]]) -> None:
        """Applies changes; a pod that cannot be read keeps its earlier charge."""
        touched: dict[str, set[str]] = {}
        for pod, is_deleted in decoded(changes):
            before = self._pods.get(pod.meta.uid), self.has_ended(pod.meta.uid)
            self._drop(pod.meta.uid)
            if is_deleted:
                self._end(pod.meta.uid)
            else:
                self._put(pod)
            if pod.meta.uid not in self._pods:
                self.workload_turns.drop(pod.meta.uid, is_deleted=is_deleted)
            if before != (self._pods.get(pod.meta.uid), self.has_ended(pod.meta.uid)):
                touched.setdefault(pod.meta.namespace or "", set()).add(pod.meta.uid)
        if touched:
            self._changed(touched)

    def _put(self, pod: StoredPod) -> None:
        """Adds a pod. Its phase ends the charge, or `review`: until then its cards may be in use."""
        found = read_charged_pod(pod, self._dialects)
        if found is not None and pod.is_over:
            self._end(pod.meta.uid)
        elif found is not None:
            self._pods[pod.meta.uid] = found
            self._by_namespace.setdefault(found.namespace, {})[pod.meta.uid] = found
            if found.gone_by_s is not None:
                self._deleted[pod.meta.uid] = found
            if found.gates:
                self._waiting[pod.meta.uid] = found
            elif found.workload is not None:
                self.workload_turns.put(pod.meta.uid, found.workload, found.member)

    def _end(self, uid: str) -> None:
        self._ended[uid] = None
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)

    def _drop(self, uid: str) -> None:
        gone = self._pods.pop(uid, None)
        self._waiting.pop(uid, None)
        self._deleted.pop(uid, None)
        if gone is None:
            return
        there = self._by_namespace[gone.namespace]
        del there[uid]
        if not there:
            del self._by_namespace[gone.namespace]


def pod_collection(access: Access) -> list_watch.Collection[StoredPod]:
    """Returns the collection of all pods of the cluster."""
    return list_watch.Collection(access, _PODS, StoredPod, _PAGE)


def read_charged_pod(pod: StoredPod, dialects: Dialects) -> ChargedPod | None:
    """Reads a pod; None where it has no charge."""
    containers, needs = needs_of(read_pod(pod, dialects))
    asked, meta = charge(needs), pod.meta
    if not asked:
        return None
    found = ChargedPod(
        meta.namespace or "",
        meta.title,
        meta.labels or {},
        asked,
        needs,
        pod.node,
        created=meta.creation_timestamp or "",
        workload=Workload(meta.namespace or "", *meta.workload) if meta.workload else None,
        revision=meta.revision,
    )
    if pod.node:
        return found._replace(named=read(pod.annotations, pod.node, containers, needs), gone_by_s=meta.gone_by_s)
    if not pod.waits_for_quota:
        return found
    priority = (pod.spec and pod.spec.priority) or 0
    wanted, version = read_preferences(pod.annotations), meta.resource_version
    return found._replace(priority=priority, gates=pod.gates, version=version, wanted=wanted)
