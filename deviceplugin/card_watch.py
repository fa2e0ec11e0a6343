"""The cards of the node over time: asked of the driver in threads, judged by `gpus.health`.

The law: a card that was there once stays in the table; while nobody answers for it, nothing new is put on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from halfcard.cards import Card

from .gpus.cards import cards
from .gpus.health import Health, reported, seen, unanswered, why_not
from .gpus.port import Gpu, Gpus, GpusError, Incident

_LOOK_EVERY_S: Final = 5.0


class CardWatch:
    """`changed` is called on the event loop when anything about the cards is other than before; `now` never goes back.

    Attributes:
        trouble: why the driver does not answer; empty while it does.
    """

    def __init__(self, gpus: Gpus, changed: Callable[[], None], now: Callable[[], float]) -> None:
        self.trouble = "the driver has not answered yet"
        self._gpus = gpus
        self._changed = changed
        self._now = now
        self._health = Health()

    def cards(self, replicas: int = 1) -> tuple[Card, ...]:
        return cards(self._health.gpus, why_not(self._health), replicas)

    def gpu(self, uuid: str) -> Gpu | None:
        return next((gpu for gpu in self._health.gpus if gpu.uuid == uuid), None)

    async def run(self) -> None:
        """Until cancelled: the thread that waits in the driver then ends by itself within moments."""
        while True:
            await self.look()
            for incident in await self._incidents():
                self._judge(reported(self._health, incident, self._now()))

    async def look(self) -> None:
        try:
            gpus = await asyncio.to_thread(self._gpus.read)
        except GpusError as error:
            self.trouble = str(error)
            self._judge(unanswered(self._health, "the driver does not answer"))
        else:
            self.trouble = ""
            self._judge(seen(self._health, gpus, self._now()))

    async def _incidents(self) -> tuple[Incident, ...]:
        try:
            return await asyncio.to_thread(self._gpus.wait, _LOOK_EVERY_S)
        except GpusError:
            await asyncio.sleep(_LOOK_EVERY_S)  # `look` says what is wrong
            return ()

    def _judge(self, health: Health) -> None:
        before, self._health = self._health, health
        if (before.gpus, why_not(before)) != (health.gpus, why_not(health)):
            self._changed()
