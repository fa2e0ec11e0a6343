"""Holds nodes, pods and their layouts, from which all decisions are made; watches of nodes and pods update it.

A pod is assumed on its node and cards before the API server confirms the bind, and the assumption is forgotten if the
bind fails: assume and forget are the words of kube-scheduler's cache.

Invariant: the state equals a rebuild from the same nodes and pods plus the assumptions. A node's room depends on its
own pods alone and is computed again when one of them changes; no operation costs more because the cluster is larger.
Used by one thread, the event loop's.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from halfcard.capacity import CapacityRules
from halfcard.cards import Node
from halfcard.cluster_view import ImplausibleNode, read_node
from halfcard.dialects import Dialects
from halfcard.dra.driver_nodes import DriverNodes
from halfcard.node_changes import without_heartbeat
from halfcard.placing.node_usage import Bound, NodeUsage, usage_of_pods, with_pod, without_pod
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.placing.room import Room
from halfcard.pod.stored_pod import StoredPod
from halfcard.quota.pod_location import UNKNOWN, NodeKind, kind_of

from .node_classes import NodeClass, class_of
from .node_names import NodeNames

Change = Callable[[NodeUsage, Node, Bound], NodeUsage | None]

_MAX_CHANGES: Final = 200_000
_MAX_ENDED: Final = 20_000

_encode: Final = msgspec.json.Encoder().encode


class Changes:
    """Logs the names of changed nodes in order; each reader remembers how far it has read."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._dropped = 0

    @property
    def now(self) -> int:
        return self._dropped + len(self._names)

    def add(self, name: str) -> None:
        self._names.append(name)
        if len(self._names) > _MAX_CHANGES:
            half = _MAX_CHANGES // 2
            del self._names[:half]
            self._dropped += half

    def since(self, then: int) -> set[str] | None:
        """Returns the names that changed after `then`; None where the log does not reach back so far."""
        return None if then < self._dropped else set(self._names[then - self._dropped :])


def _ignore(_facts: PodFacts) -> None:
    pass


class State:
    """The state; `on_arrival` is called once for each pod with claims, when it is first seen."""

    def __init__(
        self, dialects: Dialects, capacity_rules: CapacityRules, on_arrival: Callable[[PodFacts], None] = _ignore
    ) -> None:
        self.changes = Changes()
        self.node_names = NodeNames()
        self.dialects = dialects
        self.capacity_rules = capacity_rules
        self.driver_nodes = DriverNodes()
        self._on_arrival = on_arrival
        self._nodes: dict[str, Node] = {}
        self._kinds: dict[str, NodeKind] = {}
        self._implausible: dict[str, ImplausibleNode] = {}
        self._fingerprints: dict[str, int] = {}
        self._stored: dict[str, PodFacts] = {}
        self._assumed: dict[str, PodFacts] = {}
        self._bound: defaultdict[str, dict[str, Bound]] = defaultdict(dict)
        self._usages: dict[str, NodeUsage] = {}
        self._node_classes: dict[str, NodeClass] = {}
        self._inconsistent: dict[str, tuple[str, ...]] = {}
        self._undecidable: dict[str, PodFacts] = {}
        self._stale: set[str] = set()
        self._ended: OrderedDict[str, None] = OrderedDict()

    # --- reads ----------------------------------------------------------------------------------------------------

    def nodes(self) -> Mapping[str, Node]:
        return self._nodes

    def kind(self, name: str) -> NodeKind:
        return self._kinds.get(name, UNKNOWN)

    def driver(self, name: str) -> str:
        """Returns the driver of Dynamic Resource Allocation that has the cards of a node without cards of ours."""
        node = self._nodes.get(name)
        return "" if node is None or node.cards else self.driver_nodes.driver(name)

    def room(self, name: str) -> Room | None:
        """Returns the room of a node; None for an unknown or implausible node."""
        usage = self.usage(name)
        return None if usage is None else usage.room

    def node_classes(self) -> Mapping[str, NodeClass]:
        """Maps each known node to its class."""
        self.refresh()
        return self._node_classes

    def refresh(self) -> None:
        """Computes what changed nodes have; for all nodes of a large cluster this takes a second."""
        while self._stale:
            name = self._stale.pop()
            self._node_classes.pop(name, None)
            self._inconsistent.pop(name, None)
            if (usage := self.usage(name)) is not None:
                self._node_classes[name] = class_of(usage.room)
                if usage.doubts:
                    self._inconsistent[name] = usage.doubts

    def usage(self, name: str) -> NodeUsage | None:
        node = self._nodes.get(name)
        if node is None:
            return None
        if (known := self._usages.get(name)) is None:
            known = self._usages[name] = usage_of_pods(node, self._bound[name].values())
        return known

    def pod(self, uid: str) -> PodFacts | None:
        """Returns the pod as stored, or as assumed."""
        return self._assumed.get(uid) or self._stored.get(uid)

    def stored(self, uid: str) -> PodFacts | None:
        """Returns the pod as the API server last showed it, without assumptions."""
        return self._stored.get(uid)

    def pods(self) -> Iterator[PodFacts]:
        """Yields the pods with claims, and all other pods that have a node."""
        return ((self._assumed.get(uid) or facts) for uid, facts in self._stored.items())

    def pods_on(self, name: str) -> list[PodFacts]:
        found = (self.pod(uid) for uid in self._bound[name])
        return [facts for facts in found if facts is not None]

    def inconsistencies(self) -> tuple[str, ...]:
        """Describes implausible nodes, contradicting records and undecidable pods, a sentence each."""
        nodes = [str(node) for node in self._implausible.values()]
        self.refresh()
        usages = [each for found in self._inconsistent.values() for each in found]
        pods = [f"pod {facts.title}: {facts.trouble}" for facts in self._undecidable.values()]
        return (*nodes, *usages, *pods)

    # --- nodes ----------------------------------------------------------------------------------------------------

    def replace_nodes(self, objects: Iterable[Mapping[str, Any]]) -> None:
        read = {_name(obj): obj for obj in objects}
        for name in [name for name in (*self._nodes, *self._implausible) if name not in read]:
            self.drop_node(name)
        for obj in read.values():
            self.put_node(obj)

    def put_node(self, obj: Mapping[str, Any]) -> None:
        """Records a node; a heartbeat changes nothing that we read and is skipped."""
        name, fingerprint = _name(obj), _fingerprint(obj)
        if self._fingerprints.get(name) == fingerprint:
            return
        node = read_node(obj, self.capacity_rules)
        if isinstance(node, ImplausibleNode):
            self.drop_node(name)
            self._implausible[name] = node
        else:
            self._store_node(name, node)
        self._fingerprints[name] = fingerprint

    def _store_node(self, name: str, node: Node) -> None:
        self._implausible.pop(name, None)
        known = self._nodes.get(name)
        if known is None:
            self.node_names.add(name)
        if known is None or known != node:
            self._nodes[name] = node
            self._kinds[name] = kind_of(node)
            self._mark_changed(name)
        elif (known.published, known.withdrawn) != (node.published, node.withdrawn):
            self._nodes[name] = node

    def drop_node(self, name: str) -> None:
        self._fingerprints.pop(name, None)
        self._implausible.pop(name, None)
        self._kinds.pop(name, None)
        if self._nodes.pop(name, None) is not None:
            self.node_names.remove(name)
            self._mark_changed(name)

    # --- pods -----------------------------------------------------------------------------------------------------

    def replace_pods(self, pods: Iterable[StoredPod]) -> None:
        read = {pod.meta.uid: pod for pod in pods}
        for uid in [uid for uid in self._stored if uid not in read]:
            self.end_pod(uid)
        for pod in read.values():
            self.put_pod(pod)

    def put_pod(self, pod: StoredPod) -> None:
        """Records a pod; an older version, or one of a deleted pod, is ignored."""
        facts = read_facts(pod, self.dialects)
        if not facts.uid or facts.uid in self._ended or self._is_outdated(facts):
            return
        if facts.is_over:
            self.end_pod(facts.uid)
        elif facts.node or facts.asks_for_cards:
            self._store_pod(facts)
        else:
            self._drop(facts.uid)

    def _is_outdated(self, facts: PodFacts) -> bool:
        known = self._stored.get(facts.uid)
        return known is not None and _number(facts.version) < _number(known.version)

    def _store_pod(self, facts: PodFacts) -> None:
        before = self.pod(facts.uid)
        if before is None and facts.asks_for_cards:
            self._on_arrival(facts)
        self._stored[facts.uid] = facts
        self._undecidable.pop(facts.uid, None)
        if facts.trouble:
            self._undecidable[facts.uid] = facts
        if facts.node:
            self._assumed.pop(facts.uid, None)
        self._update_usages(before, self.pod(facts.uid))

    def end_pod(self, uid: str) -> None:
        """Records that a pod is deleted or that its containers never run again: its cards are free."""
        self._ended[uid] = None
        if len(self._ended) > _MAX_ENDED:
            self._ended.popitem(last=False)
        self._drop(uid)

    def _drop(self, uid: str) -> None:
        before = self.pod(uid)
        self._stored.pop(uid, None)
        self._undecidable.pop(uid, None)
        self._assumed.pop(uid, None)
        self._update_usages(before, None)

    def assume(self, facts: PodFacts) -> None:
        """Counts a pod on the node and cards of `facts` until the API server shows its node, or `forget`."""
        before = self.pod(facts.uid)
        self._assumed[facts.uid] = facts
        self._update_usages(before, facts)

    def forget(self, uid: str) -> None:
        """Drops an assumption; the pod counts again as the API server last showed it."""
        before = self._assumed.pop(uid, None)
        if before is not None:
            self._update_usages(before, self._stored.get(uid))

    def _update_usages(self, before: PodFacts | None, after: PodFacts | None) -> None:
        was = before.bound() if before is not None and before.node else None
        now = after.bound() if after is not None and after.node else None
        if was == now and before and after and before.node == after.node:
            return
        if before is not None and was is not None:
            self._bound[before.node].pop(before.uid, None)
            self._mark_changed(before.node, was, without_pod)
        if after is not None and now is not None:
            self._bound[after.node][after.uid] = now
            self._mark_changed(after.node, now, with_pod)

    def _mark_changed(self, name: str, pod: Bound | None = None, change: Change | None = None) -> None:
        """Marks a node as changed; if it is one pod that came or left, the others are not read again."""
        name = self.node_names.interned(name)  # one string for each node, instead of one for each of its pods
        known, node = self._usages.pop(name, None), self._nodes.get(name)
        if known is not None and node is not None and pod is not None and change is not None:
            changed = change(known, node, pod)
            if changed is not None:
                self._usages[name] = changed
        self._stale.add(name)
        self.changes.add(name)


def _fingerprint(obj: Mapping[str, Any]) -> int:
    return hash(_encode(without_heartbeat(obj)))


def _name(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _number(version: str) -> int:
    """Returns a resourceVersion as a number: versions of one collection grow."""
    return int(version) if version.isdecimal() else 0
