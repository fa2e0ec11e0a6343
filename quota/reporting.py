"""Statuses of quotas, written where `kubectl get gpuquota` shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.budgets import Budget
from halfcard.events import moment
from kube.calls import ApiCalls, NoAnswerError

from .keeper import Keeper
from .status import Status, since, status_of

_EVERY_S: Final = 1.0
_AT_ONCE: Final = 4


class Reporting:
    """Writes what differs from what stands there, each quota at most once a second.

    Attributes:
        trouble: what went wrong last, in one sentence.
    """

    def __init__(
        self,
        calls: ApiCalls,
        keepers: Callable[[], Mapping[str, Keeper]],
        waits: Callable[[], Mapping[str, int]],
        may_decide: Callable[[], bool],
        now: Callable[[], datetime],
    ) -> None:
        self.trouble = ""
        self._calls = calls
        self._keepers = keepers
        self._waits = waits
        self._may_decide = may_decide
        self._now = now
        self._written: dict[str, Status] = {}

    async def run(self) -> None:
        turns = asyncio.Semaphore(_AT_ONCE)
        while True:
            await asyncio.sleep(_EVERY_S)
            if self._may_decide():
                self.trouble = ""
                self._forget()
                waits = self._waits()
                keepers = [*self._keepers().items()]
                await asyncio.gather(*[self._report(keeper, waits.get(name, 0), turns) for name, keeper in keepers])

    def _forget(self) -> None:
        known = {keeper.budget.uid for keeper in self._keepers().values()}
        for uid in self._written.keys() - known:
            del self._written[uid]

    async def _report(self, keeper: Keeper, waiting: int, turns: asyncio.Semaphore) -> None:
        budget = keeper.budget
        if keeper.kept is None or not budget.uid or budget.is_mapped:
            return
        said = status_of(keeper.kept.ledger, keeper.live or {}, waiting)
        if _untimed(self._written.get(budget.uid)) == said:
            return
        async with turns:
            try:
                await self._write(budget, said)
            except NoAnswerError as error:
                self.trouble = str(error)

    async def _write(self, budget: Budget, said: Status) -> None:
        path = path_of(budget)
        before = self._written.get(budget.uid) or await self._read(path)
        status = since(said, before, moment(self._now()))
        answer = await self._calls.patch(f"{path}/status", msgspec.json.encode({"status": status}))
        if answer.status == HTTPStatus.OK:
            self._written[budget.uid] = status
        elif answer.status != HTTPStatus.NOT_FOUND:
            self.trouble = f"status of {budget.title}: the API server answered {answer.status}: {answer.message()}"

    async def _read(self, path: str) -> Status | None:
        answer = await self._calls.get(path)
        found: dict[str, Any] = msgspec.json.decode(answer.body) if answer.status == HTTPStatus.OK else {}
        status: Status | None = found.get("status")
        return status


def path_of(budget: Budget) -> str:
    if budget.namespace:
        return f"{names.QUOTA_API}/namespaces/{budget.namespace}/{names.GPU_QUOTAS}/{budget.name}"
    return f"{names.QUOTA_API}/{names.CLUSTER_GPU_QUOTAS}/{budget.name}"


def _untimed(status: Status | None) -> Status | None:
    if status is None:
        return None
    timeless = [{key: each[key] for key in each if key != "lastTransitionTime"} for each in status["conditions"]]
    return {**status, "conditions": timeless}
