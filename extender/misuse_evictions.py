"""Evicts pods that use of a card what they were not granted, as the agent of their node has marked them.

A mark is old after two minutes: the agent repeats it while the misuse lasts, so a pod that has stopped is not evicted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.api_paths import path_of_pod
from halfcard.pod.stored_pod import StoredPod
from halfcard.problems import printable
from kube.api.calls import Answer, ApiCalls, NoAnswerError
from serving.log import Log

from .bind.pod_requests import eviction

_OLD: Final = timedelta(minutes=2)
_GONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
_WHY_CHARS: Final = 300


@dataclass(slots=True)
class MisuseEvictions:
    """Holds the pods with a new mark until they are evicted; a failed eviction is repeated with the next mark.

    Attributes:
        may_act: returns whether this replica leads; other replicas do nothing.
        exempt: the namespaces whose pods stay.
    """

    calls: ApiCalls
    log: Log
    may_act: Callable[[], bool]
    exempt: frozenset[str]
    now: Callable[[], datetime]
    _marked: dict[str, StoredPod] = field(default_factory=dict)
    _has_marked: asyncio.Event = field(default_factory=asyncio.Event)

    def observe(self, pod: StoredPod) -> None:
        mark = pod.annotations.get(names.MISUSE)
        if mark and self._is_evictable(pod) and is_fresh(mark, self.now()):
            self._marked[pod.meta.uid] = pod
            self._has_marked.set()

    def _is_evictable(self, pod: StoredPod) -> bool:
        is_ending = pod.is_over or pod.meta.deletion_timestamp is not None
        return bool(pod.node) and not is_ending and pod.meta.namespace not in self.exempt

    async def run(self) -> None:
        while True:
            await self._has_marked.wait()
            self._has_marked.clear()
            while self._marked:
                _, pod = self._marked.popitem()
                if self.may_act():
                    await self._evict(pod)

    async def _evict(self, pod: StoredPod) -> None:
        title = f"{pod.meta.namespace}/{pod.meta.name}"
        try:
            answer = await self._remove(pod)
        except NoAnswerError as error:
            return self.log.warning("not evicted", pod=title, why=str(error))
        if answer.status in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED):
            mark = printable(pod.annotations[names.MISUSE], _WHY_CHARS)
            return self.log.event("evicted", pod=title, node=pod.node, misuse=mark)
        if answer.status not in _GONE:
            self.log.warning("not evicted", pod=title, why=answer.refusal())
        return None

    async def _remove(self, pod: StoredPod) -> Answer:
        """Evicts the pod, and deletes it where a disruption budget forbids that: it is that of the pod's own tenant."""
        path, options = path_of_pod(pod.meta.namespace or "", pod.meta.name or ""), _only_this(pod)
        answer = await self.calls.post(f"{path}/eviction", eviction(pod.meta.name or "", options))
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            return await self.calls.delete(path, msgspec.json.encode(options))
        return answer


def is_fresh(mark: str, now: datetime) -> bool:
    """Returns whether the mark begins with a time that is about now."""
    try:
        return abs(now - datetime.fromisoformat(mark.partition(" ")[0])) < _OLD
    except (ValueError, TypeError):
        return False


def _only_this(pod: StoredPod) -> dict[str, Any]:
    return {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": pod.meta.uid}}
