"""Decides for each container that starts whether it is held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from halfcard.cards import Card, CardLimit
from halfcard.isolation.mode import IS_OFF, IsolationMode

from ..inject.cdi import CardEdits, Edits
from ..kubelet.messages import RefusedError
from .control import Held, controls, is_share
from .driver_files import TrialSubject, trial_subject
from .way_in import NotHeldError, held, mounts_of

FilesOfCards = Callable[[Sequence[Card]], CardEdits]


@dataclass(frozen=True, slots=True)
class Isolation:
    """The isolation of this node.

    Attributes:
        mode: what the installation or the node's label says now.
        libraries: returns the folder of the placed libraries; raises NotHeldError where nothing can be held.
        files: returns the folder of a slot's account and control file.
        failure: returns why the trial of a subject has not passed; empty if it has.
    """

    mode: Callable[[], IsolationMode]
    libraries: Callable[[], Path]
    files: Callable[[str], Path]
    failure: Callable[[TrialSubject], str]

    def hold(self, slot: str, limits: Sequence[CardLimit], edits: Edits) -> Held | str:
        """Returns what a container gets that is held, or why it is not; empty for one without limits.

        Raises:
            RefusedError: it must be held, and cannot be.
        """
        mode = self.mode()
        if not is_share(limits):
            return ""
        if mode is IsolationMode.OFF:
            return IS_OFF
        try:
            return self._held(slot, limits, edits)
        except NotHeldError as why:
            if mode is IsolationMode.ENFORCE:
                raise RefusedError(_refusal(why)) from None
            return str(why)

    def _held(self, slot: str, limits: Sequence[CardLimit], edits: Edits) -> Held:
        libraries = self.libraries()
        found = held(edits, libraries=str(libraries), files=str(self.files(slot)))
        if why := self.failure(trial_subject(libraries, mounts_of(edits))):
            raise NotHeldError(why)
        return Held(found, controls(limits))

    def why_not(self, card: Card, files: FilesOfCards) -> str:
        """Returns why a share of a card cannot be held; empty if it can, and where isolation is off."""
        if self.mode() is IsolationMode.OFF:
            return ""
        try:
            self._held("", [CardLimit(card.index, card.uuid, None, None, card.memory_mib)], files([card]).edits)
        except (NotHeldError, RefusedError) as why:
            return str(why)
        return ""

    def subjects(self, cards: Sequence[Card], files: FilesOfCards) -> Iterator[TrialSubject]:
        """Yields what has to be tried before shares of these cards are held."""
        for card in cards if self.mode() is not IsolationMode.OFF else ():
            with suppress(NotHeldError, RefusedError):
                edits = files([card]).edits
                held(edits, libraries="", files="")
                yield trial_subject(self.libraries(), mounts_of(edits))


def _refusal(why: NotHeldError) -> str:
    what = f"the container cannot be held to its share, and isolation is {IsolationMode.ENFORCE}"
    return f"{what}: {why}; kubelet tries again"
