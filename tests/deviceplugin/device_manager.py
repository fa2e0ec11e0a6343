"""A model of kubelet's device manager: which device ids it reuses, and which it lists."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, count
from typing import NamedTuple

from deviceplugin.kubelet.messages import ListedDevices
from halfcard.claims import ContainerStage
from halfcard.pod.spec import INIT_CONTAINERS, ContainerPath, places
from halfcard.pod.stored_pod import StoredPod

Given = dict[tuple[str, str], frozenset[str]]
"""By container and resource."""


class DeviceManager:
    def __init__(self, seed: int = 0, resources: frozenset[str] = frozenset()) -> None:
        self._random = random.Random(seed)  # kubelet takes ids in no order
        self._resources = resources
        self._pods: dict[str, tuple[StoredPod, Given]] = {}
        self._lost: set[str] = set()

    def admit(self, pod: StoredPod) -> Given:
        """Allocates ids to a pod, init containers first; each reuses those of plain init containers before it."""
        given: Given = {}
        for resource in sorted(self._resources):
            asks, free = asks_of(pod, resource), self._free(resource)
            (ids,) = _ways([(ask.stage, ask.amount) for ask in asks], free, self._any)
            given |= {(ask.container, resource): each for ask, each in zip(asks, ids, strict=True)}
        self._pods[pod.meta.uid] = pod, given
        return given

    def _any(self, pool: Sequence[str], wanted: int) -> list[list[str]]:
        return [self._random.sample(pool, wanted)]

    def forget(self, uid: str) -> None:
        """As kubelet does with a pod that was deleted from the API, even if its containers still run."""
        del self._pods[uid]

    def lose_track_of(self, uid: str) -> None:
        """As when the allocated ids were listed during the pod's allocation: other pods get the same ids, too."""
        self._lost.add(uid)

    def held(self) -> tuple[ListedDevices, ...]:
        """The listed ids; plain init containers are not listed."""
        return tuple(
            ListedDevices(pod.meta.namespace or "", pod.meta.name or "", container, resource, ids)
            for pod, given in self._pods.values()
            for (container, resource), ids in given.items()
            if any(
                ask.container == container and ask.stage is not ContainerStage.INIT for ask in asks_of(pod, resource)
            )
        )

    def holders(self, resource: str, ids: frozenset[str]) -> frozenset[str]:
        """The ids in kubelet's checkpoint, which names all containers."""
        return frozenset(
            pod.kubelet_uid
            for pod, given in self._pods.values()
            for (_, other), held in given.items()
            if other == resource and held == ids
        )

    def _free(self, resource: str) -> Iterator[str]:
        taken = {
            device
            for uid, (_, given) in self._pods.items()
            for (_, other), ids in given.items()
            if other == resource and uid not in self._lost
            for device in ids
        }
        return (device for number in range(100_000) if (device := f"hc-{number}") not in taken)


class AllocatedIds(NamedTuple):
    """How many ids of one resource kubelet allocates to a container."""

    container: str
    stage: ContainerStage
    amount: int


def asks_of(pod: StoredPod, resource: str) -> tuple[AllocatedIds, ...]:
    """Returns the requests in the order in which kubelet allocates: init containers, then the others."""
    in_order = sorted(places(pod), key=lambda place: place.field != INIT_CONTAINERS)
    asks = [
        AllocatedIds(place.container.name, _stage(place), int(str(place.container.limits.get(resource, 0))))
        for place in in_order
    ]
    return tuple(ask for ask in asks if ask.amount)


def _stage(place: ContainerPath) -> ContainerStage:
    if place.field != INIT_CONTAINERS:
        return ContainerStage.APP
    return ContainerStage.SIDECAR if place.container.is_sidecar else ContainerStage.INIT


def every_way(asks: Sequence[tuple[ContainerStage, int]]) -> Iterator[tuple[frozenset[str], ...]]:
    """All ids of one resource that kubelet may allocate to the containers of one pod, in its order."""
    return _ways(asks, (f"hc-{number}" for number in count()), combinations)


def _ways(
    asks: Sequence[tuple[ContainerStage, int]],
    free: Iterator[str],
    reused: Callable[[Sequence[str], int], Iterable[Iterable[str]]],
    given: tuple[frozenset[str], ...] = (),
    pool: frozenset[str] = frozenset(),
) -> Iterator[tuple[frozenset[str], ...]]:
    if len(given) == len(asks):
        yield given
        return
    stage, amount = asks[len(given)]
    fresh = frozenset(next(free) for _ in range(amount - len(pool)))
    for again in reused(sorted(pool), min(amount, len(pool))):
        ids = fresh | frozenset(again)
        yield from _ways(asks, free, reused, (*given, ids), pool | ids if stage is ContainerStage.INIT else pool - ids)
