"""Clients that try again when they are asked to, and processes that get only a part of a core."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple

from devcluster.control_plane.client import ApiResponse
from devcluster.processes import Component
from devcluster.services.quota_installation import QuotaInstallation

from .manifests import share

CONNECTIONS: Final = 100
_PERIOD_S: Final = 0.1
_LOST: Final = (500, 504)
"""The API server's answer where the webhook did not answer in time."""


class Outcome(NamedTuple):
    """The statuses of all tries of one create, and the message of the last."""

    statuses: tuple[int, ...]
    message: str

    @property
    def stored(self) -> bool:
        return self.statuses[-1] == 201


def create_all(quotas: QuotaInstallation, namespaces: Sequence[str], creates: int, tries: int) -> list[Outcome]:
    """Creates pods in all namespaces in turn, all at once, and tries again when an answer says so."""

    def create(number: int) -> Outcome:
        statuses: list[int] = []
        for _ in range(tries):
            answer = quotas.webhook.create(namespaces[number % len(namespaces)], share(f"p{number:05}"))
            statuses.append(answer.status)
            if (wait_s := _retry_s(answer)) is None or len(statuses) == tries:
                break
            time.sleep(wait_s)
        return Outcome(tuple(statuses), str(answer.body)[:300])

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return [*pool.map(create, range(creates))]


def _retry_s(answer: ApiResponse) -> float | None:
    """Returns when to try again; None where the answer is final."""
    if answer.status == 429:
        return float(answer.body["details"]["retryAfterSeconds"])
    return 1.0 if answer.status in _LOST else None


@contextmanager
def slowed(programs: Sequence[Component], share_of_core: float) -> Iterator[None]:
    """Lets programs run only for a part of the time."""
    ended = threading.Event()

    def alternate() -> None:
        while not ended.wait(_PERIOD_S * share_of_core):
            for each in programs:
                each.pause()
            ended.wait(_PERIOD_S * (1 - share_of_core))
            for each in programs:
                each.resume()

    alternating = threading.Thread(target=alternate)
    alternating.start()
    try:
        yield
    finally:
        ended.set()
        alternating.join()
