"""Decides for each container that starts whether it is held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from halfcard.cards import Card, CardLimit
from halfcard.isolation.mode import IsolationMode

from ..inject.cdi import CardEdits, Edits
from ..kubelet.messages import RefusedError
from .control import Held, controls, is_share
from .way_in import NotHeldError, held


@dataclass(frozen=True, slots=True)
class Isolation:
    """The isolation of this node.

    Attributes:
        mode: what the installation or the node's label says now.
        libraries: returns the folder of the placed libraries; raises NotHeldError where nothing can be held.
        files: returns the folder of a slot's account and control file.
    """

    mode: Callable[[], IsolationMode]
    libraries: Callable[[], Path]
    files: Callable[[str], Path]

    def hold(self, slot: str, limits: Sequence[CardLimit], edits: Edits) -> Held | None:
        """Returns what a container gets that is held; None for one that is not.

        Raises:
            RefusedError: it must be held, and cannot be.
        """
        mode = self.mode()
        if mode is IsolationMode.OFF or not is_share(limits):
            return None
        try:
            return self._held(slot, limits, edits)
        except NotHeldError as why:
            if mode is IsolationMode.ENFORCE:
                raise RefusedError(_refusal(why)) from None
            return None

    def _held(self, slot: str, limits: Sequence[CardLimit], edits: Edits) -> Held:
        found = held(edits, libraries=str(self.libraries()), files=str(self.files(slot)))
        return Held(found, controls(limits))

    def why_not(self, cards: Sequence[Card], files: Callable[[Sequence[Card]], CardEdits]) -> str:
        """Returns why a share of one of these cards cannot be held; empty if all can, and where isolation is off."""
        if self.mode() is IsolationMode.OFF:
            return ""
        try:
            for card in cards:
                self._held("", [CardLimit(card.index, card.uuid, None, None, card.memory_mib)], files([card]).edits)
        except (NotHeldError, RefusedError) as why:
            return str(why)
        return ""


def _refusal(why: NotHeldError) -> str:
    what = f"the container cannot be held to its share, and isolation is {IsolationMode.ENFORCE}"
    return f"{what}: {why}; kubelet tries again"
