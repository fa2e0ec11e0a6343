"""Pods that a GpuQuota has refused, told at the quota: one Event that counts, however many there are.

`kubectl describe gpuquota` shows it. Each replica has an Event of its own, so that none writes over another's count.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.budgets import Budget
from halfcard.events import MOST_CHARS, NOWHERE, event, moment
from halfcard.problems import printable
from kube.calls import ApiCalls, NoAnswerError
from serving.log import Log

_EVERY_S: Final = 5.0
_MOST_QUOTAS: Final = 1000


@dataclass(slots=True)
class _Told:
    """Of one quota.

    Attributes:
        count: since this replica began.
        written: how many of them the Event counts.
    """

    budget: Budget
    count: int = 0
    written: int = 0
    message: str = ""
    since: str = ""


class Refusals:
    """`instance` is this replica's name.

    Attributes:
        counted: is called with namespace and quota of each refusal.
    """

    def __init__(self, calls: ApiCalls, instance: str, now: Callable[[], datetime], log: Log) -> None:
        self._calls = calls
        self._instance = instance
        self._now = now
        self._log = log
        self._told: dict[str, _Told] = {}
        self.counted: Callable[[str, str], None] = lambda _namespace, _quota: None

    def refused(self, budget: Budget, namespace: str, pod: str, message: str) -> None:
        self.counted(namespace, budget.title)
        if budget.uid not in self._told and len(self._told) >= _MOST_QUOTAS:
            return
        told = self._told.setdefault(budget.uid, _Told(budget))
        told.count += 1
        told.message = f"{namespace}/{pod}: {message}"

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            for told in [each for each in self._told.values() if each.count > each.written]:
                try:
                    await self._write(told)
                except NoAnswerError as error:
                    self._log.warning("event not written", why=str(error))
                    break

    async def _write(self, told: _Told) -> None:
        when, count = moment(self._now()), told.count
        told.since = told.since or when
        collection = f"/api/v1/namespaces/{told.budget.reference.get('namespace', NOWHERE)}/events"
        news = {"count": count, "lastTimestamp": when, "message": printable(told.message, MOST_CHARS)}
        answer = await self._calls.patch(f"{collection}/{self._name(told.budget)}", msgspec.json.encode(news))
        if answer.status == HTTPStatus.NOT_FOUND:
            answer = await self._calls.post(collection, self._event(told, news))
        told.written = count  # where it failed, the next refusal tries again
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            self._log.warning("event not written", why=f"{answer.status} {answer.message()}")

    def _name(self, budget: Budget) -> str:
        return f"{budget.name}.{hashlib.sha256(f'{budget.uid}{self._instance}'.encode()).hexdigest()[:16]}"

    def _event(self, told: _Told, news: Mapping[str, Any]) -> bytes:
        return event(
            told.budget.reference,
            {"name": self._name(told.budget)},
            {"component": names.ADMISSION_SERVICE, "host": self._instance},
            {"reason": "QuotaExceeded", "firstTimestamp": told.since, **news},
        )
