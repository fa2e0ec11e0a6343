"""Compares now and then what is counted with a list of all stored pods; run by the leader.

A watch delivers every change, so nothing should differ. Invariant: what two lists agree on is counted again from a
third; no pod is dropped that a list still has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from halfcard.dialects import Dialects
from halfcard.pod.stored_pod import StoredPod
from kube.api.access import Access
from kube.api.list_watch import ApiError, Undecodable

from .charged_pods import ChargedPod, ChargedPods, pod_collection, read_charged_pod

_REST_S: Final = 600.0
_APART_S: Final = 10.0
"""The time between two checks: a change that the watch had not brought at the first one is there at the second."""


class Difference(NamedTuple):
    """The difference of one pod.

    Attributes:
        counted: what is counted of it; None for nothing.
        stored: what the stored pod holds; None where it is gone or holds nothing.
    """

    counted: ChargedPod | None
    stored: ChargedPod | None

    @property
    def namespace(self) -> str:
        pod = self.counted or self.stored
        return pod.namespace if pod is not None else ""


Differences = Mapping[str, Difference]
"""Differences by the uid of the pod."""


def differences(counted: Mapping[str, ChargedPod], stored: Mapping[str, ChargedPod]) -> Differences:
    found = {uid: Difference(counted.get(uid), stored.get(uid)) for uid in counted.keys() | stored.keys()}
    return {uid: each for uid, each in found.items() if each.counted != each.stored}


def confirmed(first: Differences, second: Differences) -> Differences:
    """Returns the differences that both comparisons found."""
    return {uid: each for uid, each in second.items() if first.get(uid) == each}


def summary(found: Differences) -> str:
    gone = [each.counted for each in found.values() if each.counted and not each.stored]
    missed = [each.stored for each in found.values() if each.stored and not each.counted]
    both = [each.stored for each in found.values() if each.stored and each.counted]
    parts = [
        _several(gone, "counted that held nothing any more"),
        _several(missed, "not counted"),
        _several(both, "counted for something else"),
    ]
    return f"{', '.join(filter(None, parts))}; all have been counted again"


def _several(pods: list[ChargedPod], what: str) -> str:
    first = min((f"{each.namespace}/{each.name}" for each in pods), default="")
    return f"{len(pods)} {'pod was' if len(pods) == 1 else 'pods were'} {what} ({first})" if pods else ""


class ConsistencyCheck:
    """Calls `repaired` with the differences once they are counted again.

    Attributes:
        found: the differences of the last comparison.
        trouble: the last failure, in one sentence.
    """

    def __init__(
        self,
        access: Access,
        pods: ChargedPods,
        dialects: Dialects,
        may_decide: Callable[[], bool],
        repaired: Callable[[Differences], None],
    ) -> None:
        self.found: Differences = {}
        self.trouble = ""
        self._access = access
        self._pods = pods
        self._dialects = dialects
        self._may_decide = may_decide
        self._repaired = repaired

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_REST_S)
            self.found = await self._compare() if self._may_decide() else {}
            if self.found:
                await self._pods.informer.refresh()
                self._repaired(self.found)

    async def _compare(self) -> Differences:
        try:
            self.trouble = ""
            first = await self._look()
            if not first:
                return first
            await asyncio.sleep(_APART_S)
            return confirmed(first, await self._look())
        except (ApiError, OSError) as error:
            self.trouble = f"pods were not compared: {error}"
            return {}

    async def _look(self) -> Differences:
        """Compares pods whose count is the same before and after the list."""
        before = self._pods.all()
        stored = await asyncio.to_thread(self._stored)
        after = self._pods.all()
        steady = {uid for uid in before.keys() | after.keys() | stored.keys() if before.get(uid) == after.get(uid)}
        return {uid: each for uid, each in differences(after, stored).items() if uid in steady}

    def _stored(self) -> dict[str, ChargedPod]:
        """Lists the pods by a quorum. A pod that cannot be decoded keeps what it held."""
        known, found = self._pods.all(), dict[str, ChargedPod]()
        for page, _ in pod_collection(self._access).pages():
            for pod in page:
                uid = pod.uid if isinstance(pod, Undecodable) else pod.meta.uid
                stored_pod = known.get(uid) if isinstance(pod, Undecodable) else self._read(pod)
                if stored_pod is not None:
                    found[uid] = stored_pod
        return found

    def _read(self, pod: StoredPod) -> ChargedPod | None:
        return None if pod.is_over else read_charged_pod(pod, self._dialects)
