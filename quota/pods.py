"""The pods of the cluster that are charged for something, kept as they are stored."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from halfcard.asks import read_pod
from halfcard.budgets import Budget, Labels
from halfcard.charges import charge
from halfcard.dialects import Dialects
from halfcard.ledger import Amounts, Entry
from halfcard.placing.demand import needs_of
from halfcard.stored import StoredPod
from kube.access import Access
from kube.following import Following
from kube.list_watch import Change, Collection, Undecodable

_PODS: Final = "/api/v1/pods"
_PAGE: Final = 500
_MOST_ENDED: Final = 20_000


class Charged(NamedTuple):
    namespace: str
    name: str
    labels: Labels
    charge: Amounts


class ChargedPods:
    """Running `following` keeps it fresh; `changed` is called with the namespaces in which something has changed."""

    def __init__(self, access: Access, dialects: Dialects, changed: Callable[[Iterable[str]], None]) -> None:
        self._dialects = dialects
        self._changed = changed
        self._pods: dict[str, Charged] = {}
        self._by_namespace: dict[str, dict[str, Charged]] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.following = Following(
            Collection(access, _PODS, StoredPod, _PAGE), listed=self._list, changed=self._change, name="pods"
        )

    def entries(self, budget: Budget, namespaces: Iterable[str]) -> dict[str, Entry]:
        """What it counts of each pod there, by uid."""
        return {
            uid: Entry(pod.namespace, pod.name, budget.cost(pod.charge, pod.labels))
            for namespace in namespaces
            for uid, pod in self._by_namespace.get(namespace, {}).items()
        }

    def namespaces(self) -> Iterable[str]:
        """Those with pods that are charged."""
        return self._by_namespace.keys()

    def has_ended(self, uid: str) -> bool:
        """Whether it was stored and holds nothing any more; of the latest thousands that is remembered."""
        return uid in self._ended

    def _list(self, pods: Sequence[StoredPod | Undecodable]) -> None:
        before = set(self._by_namespace)
        self._pods.clear()
        self._by_namespace.clear()
        for pod in pods:
            if isinstance(pod, StoredPod):
                self._put(pod)
        self._changed(before | self._by_namespace.keys())

    def _change(self, changes: Sequence[Change[StoredPod]]) -> None:
        touched = set()
        for change in changes:
            if isinstance(change.object, Undecodable):
                continue  # what we cannot read holds on to what it held
            pod = change.object
            before = self._pods.get(pod.meta.uid), self.has_ended(pod.meta.uid)
            self._drop(pod.meta.uid)
            if change.type == "DELETED":
                self._end(pod.meta.uid)
            else:
                self._put(pod)
            if before != (self._pods.get(pod.meta.uid), self.has_ended(pod.meta.uid)):
                touched.add(pod.meta.namespace or "")
        if touched:
            self._changed(touched)

    def _put(self, pod: StoredPod) -> None:
        """Only the phase ends a charge: until then its cards may be in use."""
        asked = charge(needs_of(read_pod(pod, self._dialects))[1])
        if pod.is_over and asked:
            self._end(pod.meta.uid)
        elif asked:
            meta = pod.meta
            found = Charged(meta.namespace or "", meta.title, meta.labels or {}, asked)
            self._pods[meta.uid] = found
            self._by_namespace.setdefault(found.namespace, {})[meta.uid] = found

    def _end(self, uid: str) -> None:
        self._ended[uid] = None
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)

    def _drop(self, uid: str) -> None:
        gone = self._pods.pop(uid, None)
        if gone is None:
            return
        there = self._by_namespace[gone.namespace]
        del there[uid]
        if not there:
            del self._by_namespace[gone.namespace]
