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
from halfcard.events import MOST_CHARS, NOWHERE, event, moment
from halfcard.pod.spec import OwnerReference, PodMetadata
from halfcard.problems import printable
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

from .top_owner import above, may_be_owned

_EVERY_S: Final = 5.0
_MOST_QUOTAS: Final = 1000
_MOST_OWNERS: Final = 1000
_OWNERS_AT_ONCE: Final = 20
"""Of those that have news; the others have theirs the next time."""


class RefusingQuota(Protocol):
    """A GpuQuota or a ResourceQuota."""

    @property
    def title(self) -> str: ...
    @property
    def reference(self) -> Mapping[str, str]: ...


Refused = Callable[[RefusingQuota, str, PodMetadata, str], None]
"""Hears of a quota that has refused a pod: its namespace, its metadata, and the message."""


@dataclass(slots=True)
class _Told:
    """The Event of one object.

    Attributes:
        about: a reference to the object; None where it has to be looked up, empty where there is none.
        count: the refusals since this replica started.
        written: how many of them the Event counts already.
    """

    about: Mapping[str, str] | None
    count: int = 0
    written: int = 0
    message: str = ""
    since: str = ""

    @property
    def has_news(self) -> bool:
        return self.count > self.written

    def add(self, message: str) -> None:
        self.count += 1
        self.message = message


class RefusalEvents:
    """`instance` is this replica's name.

    Attributes:
        counted: is called with namespace and quota of each refusal.
    """

    def __init__(
        self, calls: ApiCalls, instance: str, now: Callable[[], datetime], log: Log, *, every_s: float = _EVERY_S
    ) -> None:
        self._calls = calls
        self._instance = instance
        self._now = now
        self._log = log
        self._every_s = every_s
        self._told: dict[str, _Told] = {}
        self._owners: dict[tuple[str, OwnerReference], _Told] = {}
        self.counted: Callable[[str, str], None] = lambda _namespace, _quota: None

    def refused(self, quota: RefusingQuota, namespace: str, pod: PodMetadata, message: str) -> None:
        self.counted(namespace, quota.title)
        uid = quota.reference["uid"]
        if uid in self._told or len(self._told) < _MOST_QUOTAS:
            told = self._told.setdefault(uid, _Told(quota.reference))
            told.add(f"{namespace}/{pod.title}: {message}")
        if pod.controller is not None and may_be_owned(pod.controller):
            self._told_above((namespace, pod.controller), f"pods of {pod.controller.name}: {message}")

    def _told_above(self, owner: tuple[str, OwnerReference], message: str) -> None:
        """Reports at the top owner; the owners of the latest refusals are remembered longest."""
        told = self._owners.pop(owner, None) or _Told(None)
        told.add(message)
        self._owners[owner] = told
        if len(self._owners) > _MOST_OWNERS:
            del self._owners[next(iter(self._owners))]

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                for uid, told in [(uid, each) for uid, each in self._told.items() if each.has_news]:
                    await self._write(told, uid)
                due = [(owner, each) for owner, each in self._owners.items() if each.has_news]
                for (namespace, controller), told in due[:_OWNERS_AT_ONCE]:
                    if told.about is None:
                        told.about = await above(self._calls, namespace, controller)
                    await self._write(told, controller.uid)
            except NoAnswerError as error:
                self._log.warning("event not written", why=str(error))

    async def _write(self, told: _Told, uid: str) -> None:
        if not told.about:
            told.written = told.count
            return
        when, count, name = moment(self._now()), told.count, self._name(told.about, uid)
        told.since = told.since or when
        collection = f"/api/v1/namespaces/{told.about.get('namespace', NOWHERE)}/events"
        news = {"count": count, "lastTimestamp": when, "message": printable(told.message, MOST_CHARS)}
        answer = await self._calls.patch(f"{collection}/{name}", msgspec.json.encode(news))
        if answer.status == HTTPStatus.NOT_FOUND:
            answer = await self._calls.post(
                collection, self._event(told.about, name, {"firstTimestamp": told.since, **news})
            )
        told.written = count  # where it failed, the next refusal tries again
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            self._log.warning("event not written", why=f"{answer.status} {answer.message()}")

    def _name(self, about: Mapping[str, str], uid: str) -> str:
        return f"{about['name']}.{hashlib.sha256(f'{uid}{self._instance}'.encode()).hexdigest()[:16]}"

    def _event(self, about: Mapping[str, str], name: str, news: Mapping[str, Any]) -> bytes:
        source = {"component": names.ADMISSION_SERVICE, "host": self._instance}
        return event(about, {"name": name}, source, {"reason": "QuotaExceeded", **news})
