"""Reports refused pods in Events at the quota, and at the Deployment or CronJob that owns the pods.

One Event counts all refusals, and `kubectl describe` shows it. Each replica has its own Event, so that replicas do not
overwrite each other's count.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec

from halfcard import names
from halfcard.api_paths import path_of_events
from halfcard.events import MOST_CHARS, NOWHERE, event, moment
from halfcard.pod.spec import OwnerReference, PodMetadata
from halfcard.problems import printable
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

from .top_owner import may_be_owned, owner_above

_EVERY_S: Final = 5.0
_MOST_QUOTAS: Final = 1000
_MOST_OWNERS: Final = 1000
_OWNERS_AT_ONCE: Final = 20
"""The most owners whose Events are written in one round; the others follow in the next round."""


class RefusingQuota(Protocol):
    """A GpuQuota or a ResourceQuota."""

    @property
    def title(self) -> str: ...
    @property
    def reference(self) -> Mapping[str, str]: ...


Refused = Callable[[RefusingQuota, str, PodMetadata, str], None]
"""Called with the quota that refused a pod, the namespace and metadata of the pod, and the message."""


@dataclass(slots=True)
class _RefusalCounter:
    """The Event of one object."""

    about: Mapping[str, str] | None
    """A reference to the object; None where it has to be looked up, empty where there is no object."""
    count: int = 0
    """The refusals since this replica started."""
    written: int = 0
    """How many of them the stored Event counts."""
    message: str = ""
    since: str = ""

    @property
    def is_unwritten(self) -> bool:
        return self.count > self.written

    def add(self, message: str) -> None:
        self.count += 1
        self.message = message


class RefusalEvents:
    """Counts refusals, and writes their Events; `instance` is the name of this replica.

    Attributes:
        counted: is called with the namespace and the quota of each refusal.
    """

    def __init__(
        self, calls: ApiCalls, instance: str, now: Callable[[], datetime], log: Log, *, every_s: float = _EVERY_S
    ) -> None:
        self._calls = calls
        self._instance = instance
        self._now = now
        self._log = log
        self._every_s = every_s
        self._quotas: dict[str, _RefusalCounter] = {}
        self._owners: dict[tuple[str, OwnerReference], _RefusalCounter] = {}
        self.counted: Callable[[str, str], None] = lambda _namespace, _quota: None

    def refused(self, quota: RefusingQuota, namespace: str, pod: PodMetadata, message: str) -> None:
        self.counted(namespace, quota.title)
        uid = quota.reference["uid"]
        if uid in self._quotas or len(self._quotas) < _MOST_QUOTAS:
            counter = self._quotas.setdefault(uid, _RefusalCounter(quota.reference))
            counter.add(f"{namespace}/{pod.title}: {message}")
        if pod.controller is not None and may_be_owned(pod.controller):
            self._count_for_owner((namespace, pod.controller), f"pods of {pod.controller.name}: {message}")

    def _count_for_owner(self, owner: tuple[str, OwnerReference], message: str) -> None:
        """Counts for the top owner; of too many owners, the one refused longest ago is dropped."""
        counter = self._owners.pop(owner, None) or _RefusalCounter(None)
        counter.add(message)
        self._owners[owner] = counter
        if len(self._owners) > _MOST_OWNERS:
            del self._owners[next(iter(self._owners))]

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                for uid, counter in [(uid, each) for uid, each in self._quotas.items() if each.is_unwritten]:
                    await self._write(counter, uid)
                due = [(owner, each) for owner, each in self._owners.items() if each.is_unwritten]
                for (namespace, controller), counter in due[:_OWNERS_AT_ONCE]:
                    if counter.about is None:
                        counter.about = await owner_above(self._calls, namespace, controller)
                    await self._write(counter, controller.uid)
            except NoAnswerError as error:
                self._log.warning("event not written", why=str(error))

    async def _write(self, counter: _RefusalCounter, uid: str) -> None:
        if not counter.about:
            counter.written = counter.count
            return
        when, count, name = moment(self._now()), counter.count, self._name(counter.about, uid)
        counter.since = counter.since or when
        collection = path_of_events(counter.about.get("namespace", NOWHERE))
        news = {"count": count, "lastTimestamp": when, "message": printable(counter.message, MOST_CHARS)}
        answer = await self._calls.patch(f"{collection}/{name}", msgspec.json.encode(news))
        if answer.status == HTTPStatus.NOT_FOUND:
            answer = await self._calls.post(
                collection, self._event(counter.about, name, {"firstTimestamp": counter.since, **news})
            )
        counter.written = count  # where it failed, the next refusal tries again
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            self._log.warning("event not written", why=answer.refusal())

    def _name(self, about: Mapping[str, str], uid: str) -> str:
        return f"{about['name']}.{hashlib.sha256(f'{uid}{self._instance}'.encode()).hexdigest()[:16]}"

    def _event(self, about: Mapping[str, str], name: str, news: Mapping[str, Any]) -> bytes:
        source = {"component": names.ADMISSION_SERVICE, "host": self._instance}
        return event(about, {"name": name}, source, {"reason": "QuotaExceeded", **news})
