"""Follows the cards of the node: reads the driver in threads, and judges their health by `gpus.card_health`.

Invariant: a card that existed once stays in the table; while the driver does not answer for it, nothing new is placed
on it. An unhealthy card stays unhealthy when the agent restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from halfcard.cards import Card

from .gpus.card_health import CardHealth, after_failure, after_incident, after_read, why_not
from .gpus.driver_cards import cards
from .gpus.health_file import HealthFile
from .gpus.interface import Gpus, GpusError, Incident

_LOOK_EVERY_S: Final = 5.0


class CardWatch:
    """Watches the cards; `changed` is called on the event loop after each change.

    Attributes:
        trouble: why the driver does not answer; empty while it does.
    """

    def __init__(self, gpus: Gpus, changed: Callable[[], None], now: Callable[[], float], file: HealthFile) -> None:
        """`now` returns the seconds since the machine booted."""
        self.trouble = "the driver has not answered yet"
        self._gpus = gpus
        self._changed = changed
        self._now = now
        self._file = file
        self._health = file.load()
        self._was_answered = False

    def cards(self, replicas: int = 1) -> tuple[Card, ...]:
        """Returns the cards; empty before the driver has listed all of them."""
        gpus = self._health.gpus if self._was_answered else ()
        return cards(gpus, why_not(self._health), replicas)

    async def run(self) -> None:
        """Runs until it is cancelled; the thread that waits in the driver then ends within moments."""
        while True:
            await self.read()
            for incident in await self._incidents():
                self._judge(after_incident(self._health, incident, self._now()))

    async def read(self) -> None:
        try:
            gpus = await asyncio.to_thread(self._gpus.read)
        except GpusError as error:
            self.trouble = str(error)
            self._judge(after_failure(self._health, "the driver does not answer"))
        else:
            self.trouble, self._was_answered = "", True
            self._judge(after_read(self._health, gpus, self._now()))

    async def _incidents(self) -> tuple[Incident, ...]:
        try:
            return await asyncio.to_thread(self._gpus.wait, _LOOK_EVERY_S)
        except GpusError:
            await asyncio.sleep(_LOOK_EVERY_S)  # `read` reports what is wrong
            return ()

    def _judge(self, health: CardHealth) -> None:
        before, self._health = self._health, health
        self._file.save(health)
        if (before.gpus, why_not(before)) != (health.gpus, why_not(health)):
            self._changed()
