"""The running quota service: what it follows, which replica leads, and what is settled."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.ledger import Entry
from halfcard.stored import StoredPod
from kube.access import Access
from kube.budget_source import BudgetSource
from kube.calls import ApiCalls, NoAnswerError
from kube.lease import Leadership
from kube.ledgers import FollowedLedgers, Ledgers
from serving.address import Address
from serving.health import health_app
from serving.jobs import beside, report
from serving.lifecycle import Lifecycle
from serving.listener import Listener, Stopping, serve
from serving.log import Log, utc_now

from .keeper import Keeper
from .keeping import Keeping
from .metrics import watch
from .nudging import Nudging
from .pods import ChargedPods
from .reporting import Reporting

STATUS: Final = "status"
_POD: Final = msgspec.json.Decoder(StoredPod)
_AT_ONCE: Final = Stopping(grace_s=0.0, drain_s=0.0, finish_s=1.0)
"""Nobody calls it: the sooner it gives the Lease back, the sooner another leads."""


class QuotaService:
    """All that it is made of; made on the event loop that runs it."""

    def __init__(
        self, access: Access, dialects: Dialects, status: Address, *, instance: str, namespace: str, log: Log
    ) -> None:
        self._status = status
        self._log = log
        self._calls = ApiCalls(access)
        self._leadership = Leadership(
            self._calls, namespace=namespace, name=names.QUOTA_SERVICE, instance=instance, address="", notes=dict
        )
        self._source = BudgetSource(access, self._quotas_changed)
        self._pods = ChargedPods(access, dialects, self._pods_changed)
        may_decide = self._leadership.may_decide
        self._nudging = Nudging(self._calls, dialects, may_decide, utc_now, log)
        ledgers = Ledgers(self._calls, namespace)
        self._keeping = Keeping(self._source, self._pods, ledgers, may_decide, log, freed=self._nudging.freed)
        self._ledgers = FollowedLedgers(access, namespace, self._keeping.ledger_changed)
        self._reporting = Reporting(self._calls, lambda: self._keeping.keepers, may_decide, utc_now)

    def _quotas_changed(self) -> None:
        self._keeping.quotas_changed()

    def _pods_changed(self, namespaces: Iterable[str]) -> None:
        self._keeping.pods_changed(namespaces)

    async def _is_stored(self, entry: Entry, uid: str) -> bool:
        answer = await self._calls.get(f"/api/v1/namespaces/{entry.namespace}/pods/{entry.pod}")
        if answer.status == HTTPStatus.NOT_FOUND:
            return False
        if answer.status != HTTPStatus.OK:
            raise NoAnswerError(f"the API server answered {answer.status} where a pod was looked for")
        return _POD.decode(answer.body).meta.uid == uid

    async def _lead(self) -> None:
        await self._source.wait_until_ready()
        await self._pods.following.wait_until_ready()
        await self._ledgers.following.wait_until_ready()
        gc.freeze()
        await self._leadership.run(self._keeping.take_over)

    def _problems(self) -> tuple[str, ...]:
        said = (self._leadership.trouble, self._pods.following.trouble, self._ledgers.following.trouble)
        return (*filter(None, (*said, self._keeping.trouble, self._reporting.trouble)), *self._source.problems())

    def _keepers(self) -> Iterable[Keeper]:
        return self._keeping.keepers.values() if self._leadership.may_decide() else ()

    def _ready(self) -> bool:
        return self._source.ready and self._pods.following.ready and self._ledgers.following.ready

    async def run(self, lifecycle: Lifecycle) -> None:
        follow = (*self._source.jobs(), self._pods.following.run(), self._ledgers.following.run())
        settle = (self._keeping.run(), self._keeping.expire(time.monotonic, self._is_stored))
        keep = (*settle, self._reporting.run(), self._nudging.run())
        async with beside((*follow, *keep, self._lead(), report(self._problems, self._log)), self._log):
            await serve(self._listeners(lifecycle), lifecycle=lifecycle, log=self._log, stopping=_AT_ONCE)
        self._calls.close()

    def _listeners(self, lifecycle: Lifecycle) -> Sequence[Listener]:
        registry = CollectorRegistry()
        watch(registry, leading=lambda: float(self._leadership.may_decide()), keepers=self._keepers)
        checks = {"state": lambda: None if self._ready() else "quotas, pods and ledgers have not all been seen"}
        health = health_app(checks=checks, lifecycle=lifecycle, registry=registry)
        return (Listener(STATUS, self._status.host, self._status.port, health),)
