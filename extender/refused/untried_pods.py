"""Reports pods with claims that no scheduler tries: their scheduler is not one of ours, and it has said nothing.

Such a pod waits without a reason: only schedulers write Events about pending pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import nsmallest
from http import HTTPStatus
from typing import Final

from halfcard import names
from halfcard.api_paths import path_of_events
from halfcard.events import event, once
from halfcard.exit_codes import UnreadableError
from halfcard.pod.reported_pod import ReportedPod
from halfcard.problems import printable
from kube.api.access import Access, AccessError
from kube.api.calls import ApiCalls
from kube.api.list_watch import Collection, Undecodable
from serving.log import Log

from ..state import State

_EVERY_S: Final = 60.0
_AT_ONCE: Final = 50
"""Events of one round; the next round continues with those that were reported longest ago."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_REASON: Final = "NoScheduler"


@dataclass(slots=True)
class UntriedPods:
    """Writes one Event for each such pod, and again when the API server has deleted it after an hour.

    Attributes:
        served: the schedulers that call the extender; these write Events of their own.
        may_act: returns whether this replica leads; other replicas do nothing.
    """

    access: Access
    state: State
    calls: ApiCalls
    log: Log
    served: frozenset[str]
    may_act: Callable[[], bool]
    now: Callable[[], datetime]
    _reported: dict[str, datetime] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            if self.may_act():
                await self.report()

    async def report(self) -> None:
        try:
            pods = [each for each in await asyncio.to_thread(self._untried) if self._asks_for_cards(each)]
            self._reported = {each.meta.uid: self._reported.get(each.meta.uid, _NEVER) for each in pods}
            for pod in nsmallest(_AT_ONCE, pods, key=lambda each: self._reported[each.meta.uid]):
                self._reported[pod.meta.uid] = self.now()
                await self._write_event(pod)
        except (UnreadableError, AccessError, OSError) as error:
            self.log.warning("pods that no scheduler tries are not reported", why=str(error))

    def _untried(self) -> list[ReportedPod]:
        """Lists the pods without a node whose scheduler is not ours: the API server selects them, and they are few."""
        selector = ["spec.nodeName=", *(f"spec.schedulerName!={each}" for each in sorted(self.served))]
        collection = Collection(self.access, "/api/v1/pods", ReportedPod, fields=",".join(selector))
        pods = [pod for page, _ in collection.pages() for pod in page]
        return [pod for pod in pods if not isinstance(pod, Undecodable) and pod.waits_untried(self.now())]

    def _asks_for_cards(self, pod: ReportedPod) -> bool:
        facts = self.state.pod(pod.meta.uid)
        return facts is not None and facts.asks_for_cards

    async def _write_event(self, pod: ReportedPod) -> None:
        path = path_of_events(pod.meta.namespace or "")
        answer = await self.calls.post(path, _event(pod, sentence(pod, self.served), self.now()))
        if answer.status not in (HTTPStatus.CREATED, HTTPStatus.CONFLICT):
            why = answer.refusal()
            self.log.warning("pods that no scheduler tries are not reported", pod=pod.meta.name, why=why)


def sentence(pod: ReportedPod, served: frozenset[str]) -> str:
    """Returns the message of the Event."""
    got, ours = printable(pod.scheduler), " or ".join(sorted(served))
    return (
        f"no scheduler has tried this pod since {pod.meta.creation_timestamp}: spec.schedulerName: got"
        f' "{got}"; Halfcard gives cards to pods of {ours}; create the pod again with that name, or start {got}'
    )


def _event(pod: ReportedPod, message: str, now: datetime) -> bytes:
    """Builds the Event; its name is that of the pod's earlier one, which the API server keeps for an hour."""
    meta = pod.meta
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": meta.namespace or "",
        "name": meta.name or "",
        "uid": meta.uid,
    }
    name = {"name": f"no-scheduler.{meta.uid}"}
    return event(about, name, {"component": names.EXTENDER_SERVICE}, once(_REASON, message, now))
