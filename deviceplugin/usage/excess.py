"""Finds containers that use more memory of a card than they were granted, and reports those that go on in Events.

Halfcard does not limit memory itself: what a container takes beyond its limit, its neighbours on the card cannot have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote

from halfcard import names
from halfcard.events import event, once
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

from .usage_report import ContainerUsage, NodeUsageReport, PartUsage

_EVERY_S: Final = 10.0
"""Two measurements in a row: a shorter excess is not reported."""
_AGAIN_AFTER: Final = timedelta(minutes=30)
_AT_ONCE: Final = 20
"""Events of one round; the next round continues with the others."""
_REASON: Final = "CardMemoryExceeded"


class Held(NamedTuple):
    """What a container holds of one card."""

    container: ContainerUsage
    part: PartUsage

    @property
    def key(self) -> tuple[str, str, int]:
        return self.container.uid, self.container.container, self.part.card


def excesses(report: NodeUsageReport) -> dict[tuple[str, str, int], Held]:
    """Returns the containers that use more than they were granted, by container and card."""
    held = [Held(container, part) for container in report.containers for part in container.cards]
    return {each.key: each for each in held if each.part.excess_mib}


@dataclass(slots=True)
class ExcessReports:
    """Writes an Event at the pod of each container whose excess lasts, and again after half an hour.

    Attributes:
        usage: measures the usage of the node's cards.
        node: the name of the node.
    """

    usage: Callable[[], Awaitable[NodeUsageReport]]
    calls: ApiCalls
    node: str
    log: Log
    now: Callable[[], datetime]
    _before: Mapping[tuple[str, str, int], Held] = field(default_factory=dict)
    _reported: dict[tuple[str, str, int], datetime] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.report(await self.usage())

    async def report(self, measured: NodeUsageReport) -> None:
        found = excesses(measured)
        lasting = [each for key, each in found.items() if key in self._before]
        self._before = found
        self._reported = {key: when for key, when in self._reported.items() if key in found}
        for each in [*self._due(lasting)][:_AT_ONCE]:
            self._reported[each.key] = self.now()
            await self._write_event(each)

    def _due(self, lasting: Iterable[Held]) -> Iterator[Held]:
        for each in lasting:
            last = self._reported.get(each.key)
            if last is None or self.now() - last >= _AGAIN_AFTER:
                yield each

    async def _write_event(self, held: Held) -> None:
        path = f"/api/v1/namespaces/{quote(held.container.namespace, safe='')}/events"
        try:
            answer = await self.calls.post(path, _event(held, self.node, self.now()))
            why = "" if answer.status == HTTPStatus.CREATED else f"{answer.status} {answer.message()}"
        except NoAnswerError as error:
            why = str(error)
        part = held.part
        said = {"container": held.container.title, "card": part.card, "mib": part.used_mib, "granted": part.memory_mib}
        self.log.warning("container uses more memory than granted", **said, **({"why": why} if why else {}))


def sentence(held: Held) -> str:
    container, part = held
    return (
        f"container {container.container} uses {part.used_mib} MiB of card {part.card}, and was granted"
        f" {part.memory_mib} MiB: its neighbours on the card may get too little; let it use less, or request more"
    )


def _event(held: Held, node: str, now: datetime) -> bytes:
    container = held.container
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": container.namespace,
        "name": container.pod,
        "uid": container.uid,
        "fieldPath": f"spec.containers{{{container.container}}}",
    }
    name = {"generateName": f"card-memory-exceeded.{container.uid}."}
    return event(about, name, {"component": names.AGENT, "host": node}, once(_REASON, sentence(held), now))
