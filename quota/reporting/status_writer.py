"""Writes the statuses of quotas, which `kubectl get gpuquota` shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.events import moment
from halfcard.quota.budgets import Budget
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import utc_now

from ..ledger_controller import LedgerController
from ..ledgers_controller import LedgersController
from .queue_rows import Queues
from .report_job import ReportJob
from .status import LedgerUsage, Status, exempted, since, status_of, status_of_each, untimed

_EVERY_S: Final = 1.0
_AT_ONCE: Final = 4


class StatusWriter(ReportJob):
    """Writes statuses that have changed, each quota at most once a second."""

    def __init__(
        self,
        calls: ApiCalls,
        ledgers: LedgersController,
        waits: Callable[[], Mapping[str, int]],
        queues: Callable[[], Queues],
        may_decide: Callable[[], bool],
    ) -> None:
        super().__init__(may_decide, _EVERY_S)
        self._calls = calls
        self._ledgers = ledgers
        self._waits = waits
        self._queues = queues
        self._written: dict[str, Status] = {}

    async def report(self) -> None:
        self.trouble = ""
        known = {_object(controller.budget) for controller in self._ledgers.controllers.values()}
        self._written = {uid: status for uid, status in self._written.items() if uid in known}
        turns = asyncio.Semaphore(_AT_ONCE)
        statuses = [*statuses_of(self._ledgers.controllers, self._waits(), self._queues(), utc_now())]
        await asyncio.gather(*[self._write_if_changed(budget, said, turns) for budget, said in statuses])

    async def _write_if_changed(self, budget: Budget, said: Status, turns: asyncio.Semaphore) -> None:
        written = self._written.get(_object(budget))
        if written is not None and untimed(written) == said:
            return
        async with turns:
            try:
                await self._write(budget, said)
            except NoAnswerError as error:
                self.trouble = str(error)

    async def _write(self, budget: Budget, said: Status) -> None:
        path = path_of(budget)
        before = self._written.get(_object(budget)) or await self._read(path)
        status = since(said, before, moment(utc_now()))
        answer = await self._calls.patch(f"{path}/status", msgspec.json.encode({"status": status}))
        if answer.status == HTTPStatus.OK:
            self._written[_object(budget)] = status
        elif answer.status != HTTPStatus.NOT_FOUND:
            self.trouble = f"status of {budget.title}: the API server answered {answer.status}: {answer.message()}"

    async def _read(self, path: str) -> Status | None:
        answer = await self._calls.get(path)
        found: dict[str, Any] = msgspec.json.decode(answer.body) if answer.status == HTTPStatus.OK else {}
        status: Status | None = found.get("status")
        return status


def statuses_of(
    controllers: Mapping[str, LedgerController], waits: Mapping[str, int], queues: Queues, now: datetime
) -> Iterator[tuple[Budget, Status]]:
    """Returns one status for each object, which also says whether the quota is suspended."""
    for budget, status in _counted(controllers, waits, queues):
        exemption = budget.exemption if budget.is_exempt(now) else None
        yield budget, status if exemption is None else exempted(status, exemption)


def _counted(
    controllers: Mapping[str, LedgerController], waits: Mapping[str, int], queues: Queues
) -> Iterator[tuple[Budget, Status]]:
    """Yields the status of each object: a default quota is one object for all its namespaces."""
    defaults: dict[str, dict[str, LedgerUsage]] = {}
    of_object: dict[str, Budget] = {}
    for name, controller in controllers.items():
        budget = controller.budget
        if controller.stored is None or not budget.uid or budget.is_mapped:
            continue
        ledger = controller.stored.ledger._replace(hard=budget.hard)  # also of an exemption, when nothing is limited
        counted = LedgerUsage(ledger, controller.usage.top(), waits.get(name, 0), queues.get(name, ()))
        if budget.is_default:
            of_object[_object(budget)] = budget
            defaults.setdefault(_object(budget), {})[budget.namespace] = counted
        else:
            yield budget, status_of(*counted)
    for uid, parts in defaults.items():
        yield of_object[uid], status_of_each(parts)


def _object(budget: Budget) -> str:
    """Returns the uid of the object that a budget comes from."""
    return budget.reference["uid"]


def path_of(budget: Budget) -> str:
    if budget.kind == names.GPU_QUOTA:
        return f"{names.QUOTA_API}/namespaces/{budget.namespace}/{names.GPU_QUOTAS}/{budget.name}"
    return f"{names.QUOTA_API}/{names.CLUSTER_GPU_QUOTAS}/{budget.name}"
