"""kubelet's way with device ids, as its device manager goes about it: which are handed on, and which are listed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from deviceplugin.identity import asks_of
from deviceplugin.kubelet.pod_resources import Held
from halfcard.placing.demand import Stage
from halfcard.stored import StoredPod

Given = dict[tuple[str, str], frozenset[str]]
"""By container and resource."""


class DeviceManager:
    def __init__(self, seed: int = 0, resources: frozenset[str] = frozenset()) -> None:
        self._random = random.Random(seed)  # kubelet takes ids in no order
        self._resources = resources
        self._pods: dict[str, tuple[StoredPod, Given]] = {}

    def admit(self, pod: StoredPod) -> Given:
        """Gives a pod its ids, init containers first; each takes first what plain init containers before it had."""
        given: Given = {}
        for resource in sorted(self._resources):
            pool: set[str] = set()
            free = self._free(resource)
            for ask in asks_of(pod, resource):
                reused = self._random.sample(sorted(pool), min(ask.amount, len(pool)))
                ids = frozenset(reused) | frozenset(next(free) for _ in range(ask.amount - len(reused)))
                pool = pool | ids if ask.stage is Stage.INIT else pool - ids
                given[ask.container, resource] = ids
        self._pods[pod.meta.uid] = pod, given
        return given

    def forget(self, uid: str) -> None:
        """As it does with a pod that is no longer in the API, be its containers gone or not."""
        del self._pods[uid]

    def held(self) -> tuple[Held, ...]:
        """Plain init containers are not listed."""
        return tuple(
            Held(pod.meta.namespace or "", pod.meta.name or "", container, resource, ids)
            for pod, given in self._pods.values()
            for (container, resource), ids in given.items()
            if any(ask.container == container and ask.stage is not Stage.INIT for ask in asks_of(pod, resource))
        )

    def _free(self, resource: str) -> Iterator[str]:
        taken = {
            device
            for _, given in self._pods.values()
            for (_, other), ids in given.items()
            if other == resource
            for device in ids
        }
        return (device for number in range(100_000) if (device := f"hc-{number}") not in taken)
