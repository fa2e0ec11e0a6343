"""Reports pods that go on using what they were not granted: in Events, and marked for the extender, which evicts them.

The agent does not evict: the account of a node that was taken over could then end every pod of the cluster, but it may
mark the pods of its own node only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

import msgspec

from halfcard import names
from halfcard.api_paths import path_of_events, path_of_pod
from halfcard.events import event, moment, once
from halfcard.placing.pod_facts import PodFacts
from kube.api.calls import Answer, ApiCalls, NoAnswerError
from serving.log import Log

from .misuse import Misuse, misuses
from .usage_report import NodeUsageReport

_EVERY_S: Final = 5.0
_REPORTED_AT: Final = 2
"""How many measurements in a row have a misuse when it is reported."""
_MARKED_AT: Final = 3
"""And when its pod is marked: kubelet may say seconds late which containers a pod has."""
_AGAIN_AFTER: Final = timedelta(minutes=30)
_MARK_AGAIN_AFTER: Final = timedelta(seconds=30)
_AT_ONCE: Final = 20
"""Events, and marks, of one round; the next round continues with the others."""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)

Key = tuple[str, str, int]


@dataclass(slots=True)
class MisuseReports:
    """Writes an Event at the pod when its misuse lasts, and again after half an hour; marks the pod meanwhile.

    Attributes:
        usage: measures the usage of the node's cards.
        pods: returns the node's pods by uid; None before they are known.
        node: the name of the node.
        exempt: the namespaces whose pods are not marked, and may use cards without a grant.
        marks: whether pods are marked.
    """

    usage: Callable[[], Awaitable[NodeUsageReport]]
    pods: Callable[[], Mapping[str, PodFacts] | None]
    calls: ApiCalls
    node: str
    exempt: frozenset[str]
    marks: bool
    log: Log
    now: Callable[[], datetime]
    _lasting: Mapping[Key, int] = field(default_factory=dict)
    _reported: dict[Key, datetime] = field(default_factory=dict)
    _marked: dict[Key, datetime] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.report(await self.usage())

    async def report(self, measured: NodeUsageReport) -> None:
        found = misuses(measured, self.pods() or {}, self.exempt)
        self._lasting = {key: self._lasting.get(key, 0) + 1 for key in found}
        reportable = [each for key, each in found.items() if self._lasting[key] >= _REPORTED_AT]
        for each in self._due(reportable, self._reported, _AGAIN_AFTER):
            await self._write_event(each)
        markable = [each for each in reportable if self._lasting[each.key] >= _MARKED_AT and self._may_mark(each)]
        for each in self._due(markable, self._marked, _MARK_AGAIN_AFTER):
            await self._mark(each)

    def _may_mark(self, misuse: Misuse) -> bool:
        return self.marks and misuse.namespace not in self.exempt

    def _due(self, found: Iterable[Misuse], done: dict[Key, datetime], again_after: timedelta) -> Iterator[Misuse]:
        """Yields what was not done lately, and notes it as done; forgets what lasts no more."""
        for key in done.keys() - self._lasting.keys():
            del done[key]
        due = [each for each in found if self.now() - done.get(each.key, _NEVER) >= again_after]
        for each in due[:_AT_ONCE]:
            done[each.key] = self.now()
            yield each

    async def _write_event(self, misuse: Misuse) -> None:
        path = path_of_events(misuse.namespace)
        why = await self._refusal(self.calls.post(path, _event(misuse, self.node, self.now())), HTTPStatus.CREATED)
        said = {"of": misuse.title, "reason": misuse.reason, "card": misuse.card, "mib": misuse.used_mib}
        self.log.warning("card used beyond the grant", **said, **({"why": why} if why else {}))

    async def _mark(self, misuse: Misuse) -> None:
        path = path_of_pod(misuse.namespace, misuse.pod)
        marked = {names.MISUSE: f"{moment(self.now())} {misuse.sentence}"}
        body = msgspec.json.encode({"metadata": {"uid": misuse.uid, "annotations": marked}})
        if why := await self._refusal(self.calls.patch(path, body), HTTPStatus.OK):
            self.log.warning("pod not marked for eviction", pod=misuse.title, why=why)

    async def _refusal(self, call: Awaitable[Answer], success: HTTPStatus) -> str:
        try:
            answer = await call
        except NoAnswerError as error:
            return str(error)
        return "" if answer.status == success else answer.refusal()


def _event(misuse: Misuse, node: str, now: datetime) -> bytes:
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": misuse.namespace, "name": misuse.pod, "uid": misuse.uid}
    if misuse.container:
        about["fieldPath"] = f"spec.containers{{{misuse.container}}}"
    name = {"generateName": f"card-misuse.{misuse.uid}."}
    content = once(misuse.reason, misuse.sentence, now)
    return event(about, name, {"component": names.AGENT, "host": node}, content)
