"""Whether this node holds containers to their shares: the mode, the trials, and what follows for what it offers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from halfcard.cards import Card
from halfcard.isolation.mode import ChosenMode, IsolationMode

from .advertise.announcement import Condition, isolation_condition
from .arguments import NodePaths
from .gpus.interface import Gpus, GpusError
from .inject.card_files import CardFiles
from .isolation.driver_files import TrialSubject
from .isolation.isolation import Isolation
from .isolation.placed import place
from .isolation.share_files import ShareFiles
from .isolation.trial import Trial
from .isolation.trials import ROOM_MIB, Trials, card_to_try
from .isolation.way_in import NotHeldError
from .node_view import NodeView
from .usage.usage_report import IsolationState

_TRY_EVERY_S: Final = 10.0


class NodeIsolation:
    """The isolation of a node; `changed` is called after a trial."""

    def __init__(
        self,
        view: NodeView,
        card_files: CardFiles,
        gpus: Gpus,
        paths: NodePaths,
        *,
        shares: ShareFiles,
        changed: Callable[[], None],
    ) -> None:
        self._view = view
        self._card_files = card_files
        self._gpus = gpus
        self._paths = paths
        self._changed = changed
        self._trial = Trial(paths.run)
        self._trials = Trials(self._attempt, paths.state / "trials", time.monotonic)
        self._isolation = Isolation(lambda: self.chosen().mode, self._libraries, shares.folder, self._trials.why_not)
        self.hold = self._isolation.hold

    def chosen(self) -> ChosenMode:
        """Returns the mode; made-up cards run nothing that could be held."""
        return ChosenMode(IsolationMode.OFF, "") if self._gpus.is_made_up else self._view.isolation()

    def _libraries(self) -> Path:
        if self._paths.by_symlinks:
            raise NotHeldError("the agent runs with --without-cdi, and the libraries come by CDI; update the runtime")
        return place(self._paths.libraries, self._paths.state / "libraries")

    def state(self) -> IsolationState:
        return IsolationState(self.chosen().mode, self._why_not())

    def condition(self) -> Condition | None:
        return isolation_condition(self.chosen(), self._why_not())

    def _why_not(self) -> str:
        """Returns why the shares of some card cannot be held; empty where all can."""
        cards = self._view.node().cards
        return next(filter(None, (self._isolation.why_not(card, self._card_files) for card in cards)), "")

    def closed(self, card: Card) -> str:
        """Returns why a card gets no new shares: they must be held and cannot be; empty otherwise."""
        if self.chosen().mode is not IsolationMode.ENFORCE:
            return ""
        return self._isolation.why_not(card, self._card_files)

    # --- trials -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_TRY_EVERY_S)
            if self.chosen().mode is not IsolationMode.OFF:
                await self.try_due()
                self._changed()  # NVIDIA's description of the cards may be another one now

    async def try_due(self) -> None:
        """Tries what has not passed."""
        await self._trials.run([*self._isolation.subjects(self._healthy(), self._card_files)])

    def _healthy(self) -> list[Card]:
        return [card for card in self._view.node().cards if not card.why_not]

    async def _attempt(self, subject: TrialSubject) -> str:
        free = await asyncio.to_thread(lambda: {card.uuid: self._free_mib(card) for card in self._healthy()})
        if card := card_to_try(free):
            return await self._trial(subject, card)
        return f"the isolation libraries were not tried: no card has {ROOM_MIB} MiB free"

    def _free_mib(self, card: Card) -> int:
        with suppress(GpusError):
            return (card.memory_mib or 0) - self._gpus.load(card.uuid).used_mib
        return 0
