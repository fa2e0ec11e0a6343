"""Follows this node's pods and the node object.

Invariant: the state is what the watch last reported; before its first list, nothing is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from halfcard.cards import Node
from halfcard.dialects import Dialects
from halfcard.placing.node_usage import NodeUsage, Share, usage_of_pods
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.pod.stored_pod import StoredPod
from kube.api.access import Access
from kube.api.informer import Informer
from kube.api.list_watch import Collection, Undecodable, WatchEvent

from .pod_status import NodePod

_PODS_A_PAGE: Final = 250


class NodePods:
    """The pods of this node; `changed` is called on the event loop after each change."""

    def __init__(self, access: Access, node: str, dialects: Dialects, changed: Callable[[], None]) -> None:
        self._dialects = dialects
        self._changed = changed
        self._pods: dict[str, tuple[NodePod, PodFacts]] = {}
        self._usage: tuple[Node, NodeUsage] | None = None
        self.informer = Informer(
            Collection(access, "/api/v1/pods", NodePod, _PODS_A_PAGE, f"spec.nodeName={node}"),
            listed=self._list,
            changed=self._change,
            name="pods",
        )

    def __iter__(self) -> Iterator[tuple[NodePod, PodFacts]]:
        return iter(self._pods.values())

    def with_claims(self) -> list[tuple[NodePod, PodFacts]]:
        """Returns the pods that have not ended and request cards."""
        return [(pod, facts) for pod, facts in self if not facts.is_over and facts.asks_for_cards]

    def unfinished(self) -> dict[str, PodFacts] | None:
        """Returns the pods that have not ended, by the uid that kubelet runs them under; None before the first list."""
        if not self.informer.ready:
            return None
        return {pod.kubelet_uid: facts for pod, facts in self if not facts.is_over}

    def usage(self, node: Node) -> NodeUsage:
        """Returns the usage of the node's cards, computed once for each state of pods and cards."""
        if self._usage is None or self._usage[0] != node:
            self._usage = node, usage_of_pods(node, [facts.bound() for _, facts in self.with_claims()])
        return self._usage[1]

    def facts(self, pod: StoredPod) -> PodFacts:
        """Returns the facts of a pod; reads them again only where the watch last reported another version of it."""
        known = self._pods.get(pod.meta.uid)
        if known is not None and known[1].version == pod.meta.resource_version:
            return known[1]
        return read_facts(pod, self._dialects)

    def known_share(self, facts: PodFacts, node: Node) -> Share | None:
        """Returns the recorded cards as they are known already; None where these facts are not the latest."""
        known = self._pods.get(facts.uid)
        share = self.usage(node).shares.get(facts.uid) if known is not None and known[1] is facts else None
        return share if share is not None and share.recorded else None

    def _list(self, pods: Sequence[NodePod | Undecodable]) -> None:
        self._pods.clear()
        for pod in pods:
            self._put(pod)
        self._notify()

    def _change(self, changes: Sequence[WatchEvent[NodePod]]) -> None:
        for change in changes:
            if change.type == "DELETED" and not isinstance(change.object, Undecodable):
                self._pods.pop(change.object.meta.uid, None)
            else:
                self._put(change.object)
        self._notify()

    def _put(self, pod: NodePod | Undecodable) -> None:
        """Takes a pod; one that cannot be read, which admission would refuse, is refused when it starts."""
        if not isinstance(pod, Undecodable):
            self._pods[pod.meta.uid] = pod, read_facts(pod, self._dialects)

    def _notify(self) -> None:
        self._usage = None
        self._changed()


class WatchedObject:
    """An object that another program writes: this node, or the ConfigMap with its time slices."""

    def __init__(self, access: Access, collection: str, name: str, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.object: Mapping[str, Any] | None = None
        """None where it does not exist, or is not known yet."""
        self.informer = Informer(
            Collection(access, collection, dict[str, Any], fields=f"metadata.name={name}"),
            listed=self._list,
            changed=self._change,
            name=f"{collection.rpartition('/')[2]}/{name}",
        )

    def _list(self, objects: Sequence[dict[str, Any] | Undecodable]) -> None:
        readable = [obj for obj in objects if not isinstance(obj, Undecodable)]
        self.object = readable[0] if readable else None
        self._changed()

    def _change(self, changes: Sequence[WatchEvent[dict[str, Any]]]) -> None:
        for change in changes:
            gone = change.type == "DELETED" or isinstance(change.object, Undecodable)
            self.object = None if gone else change.object  # type: ignore[assignment]  # not Undecodable
        self._changed()
