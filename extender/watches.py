"""Watches nodes and pods of the API server and writes them to the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.placing.pod_facts import PodFacts
from halfcard.pod.stored_pod import StoredPod
from kube.api.access import Access
from kube.api.informer import Informer
from kube.api.list_watch import Collection, Undecodable, WatchEvent, decoded

from .state import State

_NODES: Final = "/api/v1/nodes"
_PODS: Final = "/api/v1/pods"
_PODS_A_PAGE: Final = 500
_MAX_UNDECODABLE: Final = 100


class ClusterWatches:
    """The informers of nodes and pods, which update `state` while they run."""

    def __init__(
        self,
        access: Access,
        dialects: Dialects,
        capacity_rules: CapacityRules,
        *,
        on_arrival: Callable[[PodFacts], None],
        on_pod: Callable[[StoredPod], None] = lambda _: None,
    ) -> None:
        self.state = State(dialects, capacity_rules, on_arrival)
        self._on_pod = on_pod
        self._undecodable: dict[str, str] = {}
        self.nodes = Informer(
            Collection(access, _NODES, dict[str, Any]),
            listed=self._list_nodes,
            changed=self._change_nodes,
            name="nodes",
        )
        self.pods = Informer(
            Collection(access, _PODS, StoredPod, _PODS_A_PAGE),
            listed=self._list_pods,
            changed=self._change_pods,
            name="pods",
        )

    def ready(self) -> bool:
        """Returns whether all nodes and pods have been listed once."""
        return self.nodes.ready and self.pods.ready

    async def wait_until_ready(self) -> None:
        await self.nodes.wait_until_ready()
        await self.pods.wait_until_ready()

    def problems(self) -> tuple[str, ...]:
        troubles = tuple(trouble for trouble in (self.nodes.trouble, self.pods.trouble) if trouble)
        return (*troubles, *self._undecodable.values(), *self.state.inconsistencies())

    def _list_nodes(self, objects: Sequence[dict[str, Any] | Undecodable]) -> None:
        self.state.replace_nodes([obj for obj in objects if not isinstance(obj, Undecodable)])
        self._prepare(self.pods)

    def _change_nodes(self, changes: Sequence[WatchEvent[dict[str, Any]]]) -> None:
        for node, is_deleted in decoded(changes):
            if is_deleted:
                self.state.drop_node(str(node["metadata"]["name"]))
            else:
                self.state.put_node(node)

    def _list_pods(self, pods: Sequence[StoredPod | Undecodable]) -> None:
        self._undecodable.clear()
        for pod in pods:
            if isinstance(pod, Undecodable):
                self._note_undecodable(pod)
        self.state.replace_pods([pod for pod in pods if not isinstance(pod, Undecodable)])
        self._prepare(self.nodes)

    def _prepare(self, other: Informer[Any]) -> None:
        """Computes what all nodes have once both are listed: the scheduler does not wait for it until then."""
        if other.ready:
            self.state.refresh()

    def _change_pods(self, changes: Sequence[WatchEvent[StoredPod]]) -> None:
        for change in changes:
            if isinstance(change.object, Undecodable):
                self._note_undecodable(change.object)
            elif change.type == "DELETED":
                self.state.end_pod(change.object.meta.uid)
            else:
                self.state.put_pod(change.object)
                self._on_pod(change.object)

    def _note_undecodable(self, pod: Undecodable) -> None:
        if len(self._undecodable) < _MAX_UNDECODABLE:
            self._undecodable[pod.uid] = f"pod {pod}"
