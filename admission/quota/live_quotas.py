"""Reads the ResourceQuotas of a namespace once for all callers that ask at about the same time.

Invariant: each caller gets a read that began after its call, so that no pod is refused by an outdated state.
"""

from __future__ import annotations

import asyncio
from typing import Final

from halfcard.quota.native_quota import ResourceQuota
from kube.api.calls import ApiCalls, NoAnswerError
from kube.quota.native_quota_source import ReadError, quotas_in

EVERY_S: Final = 0.1
"""The shortest time between two reads of one namespace: a burst of refused pods costs ten reads a second."""

_TIMEOUT_S: Final = 1.0
"""The API server waits 5 s for the webhook, and its own plugin enforces the quota anyway."""

CONNECTIONS: Final = 4
"""Separate connections: pods that are refused do not delay reservations."""

Read = list[ResourceQuota] | None
"""The quotas of a namespace; None if no answer came in time."""


class LiveQuotas:
    def __init__(self, calls: ApiCalls) -> None:
        self._calls = calls
        self._next: dict[str, asyncio.Task[Read]] = {}
        self._began: dict[str, float] = {}

    async def read(self, namespace: str) -> Read:
        task = self._next.get(namespace)
        if task is None:
            task = self._next[namespace] = asyncio.create_task(
                self._read_in_turn(namespace), name=f"read quotas of {namespace}"
            )
        return await asyncio.shield(task)  # other callers wait for it, too

    async def _read_in_turn(self, namespace: str) -> Read:
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(self._began.get(namespace, 0.0) + EVERY_S - clock())
        now = clock()
        self._began = {name: at for name, at in self._began.items() if now - at < EVERY_S} | {namespace: now}
        del self._next[namespace]  # before the request is sent: later callers need a later read
        try:
            return await quotas_in(self._calls, namespace, _TIMEOUT_S)
        except (ReadError, NoAnswerError):
            return None
