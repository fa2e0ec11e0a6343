"""Writes a GpuQuotaUsage into each namespace for each quota that its members cannot read.

Each change of a shared quota concerns all its namespaces: objects are written at a bounded rate, first those of
namespaces whose own usage changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from halfcard import names
from halfcard.events import moment
from halfcard.quota.budgets import Budget
from kube.api.calls import Answer, ApiCalls
from kube.quota.budget_source import BudgetSource
from serving.log import utc_now

from ..ledgers_controller import CountedLedger, LedgersController
from .namespace_usage import NamespaceUsage, object_name, usage_of
from .report_job import ReportJob
from .status import Status, since, untimed
from .usage_objects import UsageKey, UsageObjects, path_of_usages
from .usage_turns import UsageVersion, Written, due

_EVERY_S: Final = 1.0
_AT_ONCE: Final = 4
_MOST_WRITTEN: Final = 20
"""The most objects that are written a second: 5,000 namespaces take some four minutes."""
_MOST_COMPARED: Final = 500

_GONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
_TERMINATING: Final = "being terminated"


class Change(NamedTuple):
    key: UsageKey
    budget: Budget
    status: Status


class UsageWriter(ReportJob):
    def __init__(
        self,
        calls: ApiCalls,
        source: BudgetSource,
        ledgers: LedgersController,
        objects: UsageObjects,
        waits: Callable[[], Mapping[str, int]],
        *,
        may_decide: Callable[[], bool],
        now: Callable[[], float],
    ) -> None:
        """Asks `waits` how many pods wait in each namespace."""
        super().__init__(may_decide, _EVERY_S)
        self._calls = calls
        self._source = source
        self._ledgers = ledgers
        self._objects = objects
        self._waits = waits
        self._now = now
        self._budgets: list[Budget] = []
        self._wanted: dict[UsageKey, Budget] = {}
        self._written: dict[UsageKey, Written] = {}

    async def report(self) -> None:
        self.trouble = ""
        if not self._objects.informer.ready:
            return
        self._forget_changed()
        wanted = self._wanted_objects()
        changes = [*self._changes(wanted)]
        turns = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(
            *[self._write(each, turns) for each in changes],
            *[self._delete(key, turns) for key in [*self._objects.stored.keys() - wanted.keys()][:_MOST_WRITTEN]],
        )

    def _forget_changed(self) -> None:
        """Looks again at what somebody may have changed or deleted."""
        for key in self._objects.changed:
            self._written.pop(key, None)
        self._objects.changed.clear()

    def _wanted_objects(self) -> Mapping[UsageKey, Budget]:
        budgets = self._source.budgets()
        if budgets is not self._budgets:
            hidden = [each for each in budgets if each.kind != names.GPU_QUOTA]
            self._budgets = budgets
            self._wanted = {
                UsageKey(space, object_name(budget)): budget
                for budget in hidden
                for space in self._source.namespaces(budget)
            }
            self._written = {key: each for key, each in self._written.items() if key in self._wanted}
        return self._wanted

    def _changes(self, wanted: Mapping[UsageKey, Budget]) -> Iterator[Change]:
        """Yields what to write now, after a look at the objects that may be out of date."""
        waits = self._waits()
        counted = {key: found for key, budget in wanted.items() if (found := self._ledgers.counted(budget))}
        versions = {key: _version(key, each, waits) for key, each in counted.items()}
        left = _MOST_WRITTEN
        for key in due(versions, self._written, self._now())[:_MOST_COMPARED]:
            said, before = _status(key, counted[key], versions[key]), self._objects.status(key)
            self._written[key] = Written(versions[key], self._now())
            if before is None or untimed(before) != said:
                yield Change(key, counted[key].budget, since(said, before, moment(utc_now())))
                left -= 1
            if not left:
                return

    async def _write(self, change: Change, turns: asyncio.Semaphore) -> None:
        key = change.key
        async with turns:
            if key in self._objects.stored:
                answer = await self._calls.patch(key.path, msgspec.json.encode({"status": change.status}))
            else:
                answer = await self._calls.post(path_of_usages(key.namespace), _object(change))
        self._check(key, answer)

    async def _delete(self, key: UsageKey, turns: asyncio.Semaphore) -> None:
        async with turns:
            answer = await self._calls.delete(key.path)
        self._check(key, answer)

    def _check(self, key: UsageKey, answer: Answer) -> None:
        """Notes a refusal, and tries again; not where the object or its namespace has ended meanwhile."""
        if answer.status < HTTPStatus.BAD_REQUEST:
            return
        self._written.pop(key, None)
        if answer.status not in _GONE and _TERMINATING not in answer.message():
            what = f"{names.GPU_QUOTA_USAGE} {key.namespace}/{key.name}"
            self.trouble = f"{what}: the API server answered {answer.status}: {answer.message()}"


def _version(key: UsageKey, counted: CountedLedger, waits: Mapping[str, int]) -> UsageVersion:
    own = (counted.usage.tally(key.namespace).changes, waits.get(key.namespace, 0), counted.is_exempt)
    return UsageVersion(own, counted.stored.version)


def _status(key: UsageKey, counted: CountedLedger, version: UsageVersion) -> Status:
    usage = counted.usage
    _, waiting, is_exempt = version.own
    here = NamespaceUsage(key.namespace, usage.tally(key.namespace).total, usage.top(key.namespace), waiting)
    return usage_of(counted.budget, counted.stored.ledger, here, is_exempt=is_exempt)


def _object(change: Change) -> bytes:
    key, budget, status = change
    reference = {field: budget.reference[field] for field in ("apiVersion", "kind", "name", "uid")}
    owned = {} if budget.is_mapped else {"ownerReferences": [reference]}  # an owner is in the namespace, or in none
    metadata: Mapping[str, Any] = {"namespace": key.namespace, "name": key.name, **owned}
    version = names.QUOTA_API.removeprefix("/apis/")
    return msgspec.json.encode(
        {"apiVersion": version, "kind": names.GPU_QUOTA_USAGE, "metadata": metadata, "status": status}
    )
