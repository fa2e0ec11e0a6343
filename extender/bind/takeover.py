"""The first step of a new leader: fences pods before it decides anything.

Invariant: every bind of the previous leader that may still arrive is either seen here or can no longer succeed; in the
second case its reservations are released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec

from halfcard.placing.pod_facts import PodFacts
from halfcard.pod.stored_pod import StoredPod
from kube.api.calls import ApiCalls

from ..state import State
from .pod_requests import fence_patch, pod_path
from .quota_reservations import QuotaReservations

_AT_ONCE: Final = 16
_POD: Final = msgspec.json.Decoder(StoredPod)


class TakeoverError(Exception):
    """A pod could not be fenced; the replica releases the Lease and tries again."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """Takes over; `refresh` lists all pods again, `next_fence` returns a fence that no pod carries yet."""

    state: State
    calls: ApiCalls
    refresh: Callable[[], Awaitable[None]]
    next_fence: Callable[[], str]
    budgets: QuotaReservations

    async def run(self) -> None:
        await self.refresh()
        turns = asyncio.Semaphore(_AT_ONCE)

        async def fence(facts: PodFacts) -> None:
            async with turns:
                await self._fence(facts)

        waiting = [facts for facts in self.state.pods() if facts.asks_for_cards and not self._is_bound(facts)]
        async with asyncio.TaskGroup() as group:
            for facts in waiting:
                group.create_task(fence(facts), name="fence a pod")
        self.budgets.release_all([facts for facts in waiting if not self._is_bound(facts)])

    def _is_bound(self, facts: PodFacts) -> bool:
        """Returns whether the API server shows the pod as bound; assumptions of an earlier term do not count."""
        stored = self.state.stored(facts.uid)
        return stored is not None and bool(stored.node)

    async def _fence(self, facts: PodFacts) -> None:
        """Fences a pod; the answer shows whether it is bound, and no earlier bind can succeed afterwards."""
        answer = await self.calls.patch(pod_path(facts), fence_patch(facts.uid, self.next_fence()))
        if answer.status == HTTPStatus.OK:
            pod = _POD.decode(answer.body)
            if not pod.node:
                self.state.forget(facts.uid)
            self.state.put_pod(pod)
        elif answer.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):  # gone, or another pod of that name
            raise TakeoverError(f"pod {facts.title} could not be fenced: {answer.refusal()}")
