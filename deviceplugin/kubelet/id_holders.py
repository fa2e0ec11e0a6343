"""Finds which containers hold which device ids.

Invariant: kubelet's socket is asked only where its checkpoint is unusable. At each List call, kubelet up to 1.36
recomputes what it has allocated and may forget what it is just allocating: an id is allocated to two pods
(kubernetes#137534), or an admitted pod can never start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from halfcard.claims import ContainerStage
from halfcard.placing.pod_facts import PodFacts

from ..device_ids import is_ours
from .messages import CheckpointEntry, ListedDevices

Pods = Mapping[str, PodFacts]
"""The pods of this node that have not ended, by the uid under which kubelet runs them."""


class IdHolders:
    """`entries` reads the checkpoint, `listed` calls the socket; `pods` returns None before the first list."""

    def __init__(
        self,
        entries: Callable[[], tuple[CheckpointEntry, ...] | None],
        listed: Callable[[], Awaitable[tuple[ListedDevices, ...]]],
        pods: Callable[[], Pods | None],
    ) -> None:
        self._entries = entries
        self._listed = listed
        self._pods = pods

    async def listed_devices(self) -> tuple[ListedDevices, ...]:
        """Lists holders like pod-resources, without plain init containers. Raises KubeletError."""
        entries, pods = self._entries(), self._pods()
        if entries is None or pods is None:
            return await self._listed()
        return tuple(_held(entries, pods))

    async def held_ids(self) -> dict[str, set[str]]:
        """Returns our ids that containers hold, by resource. Raises KubeletError."""
        entries, pods = self._entries(), self._pods()
        if entries is None:
            return _our_ids((each.resource, each.ids) for each in await self._listed())
        return _our_ids((each.resource, each.ids) for each in entries if pods is None or each.uid in pods)

    def pods_with_ids(self, resource: str, ids: frozenset[str]) -> dict[str, PodFacts | None]:
        """Returns the pods with a container that holds exactly these ids, by kubelet's uid; None for an unknown pod.

        There are several where kubelet allocated the same ids twice, and none where nothing is known.
        """
        entries, pods = self._entries(), self._pods()
        if entries is None or pods is None:
            return {}
        return {each.uid: pods.get(each.uid) for each in entries if each.resource == resource and each.ids == ids}


def _held(entries: Iterable[CheckpointEntry], pods: Pods) -> Iterator[ListedDevices]:
    for each in entries:
        facts = pods.get(each.uid)
        if facts is not None and each.container not in _plain_init(facts):
            yield ListedDevices(facts.namespace, facts.name, each.container, each.resource, each.ids)


def _plain_init(facts: PodFacts) -> list[str]:
    needs = zip(facts.containers, facts.demand.needs, strict=True)
    return [container for container, need in needs if need.stage is ContainerStage.INIT]


def _our_ids(entries: Iterable[tuple[str, Iterable[str]]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for resource, ids in entries:
        if ours := {device for device in ids if is_ours(device)}:
            found[resource] |= ours
    return dict(found)
