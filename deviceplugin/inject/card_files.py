"""Collects what a container needs to reach its cards: from NVIDIA's own CDI description, else the device files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from halfcard import names
from halfcard.cards import Card

from ..allocate.container_identity import UnservedError
from .cdi import VERSION, own_edits
from .nvidia_cdi import CardEdits, Description, edits_of


@dataclass(frozen=True, slots=True)
class CardFiles:
    """The files of this node.

    Attributes:
        devices: the folder of device files.
        descriptions: NVIDIA's own, read again at each call.
        are_made_up: the cards are fake and have no files.
    """

    devices: Path
    descriptions: Callable[[], Iterable[Description]]
    are_made_up: bool = False

    def __call__(self, cards: Sequence[Card]) -> CardEdits:
        described = edits_of(self.descriptions(), cards)
        if described is not None:
            return described
        for card in cards:
            file = self.devices / Path(f"{names.DEVICE_FILES}{card.index}").name
            if not self.are_made_up and not file.exists():
                raise UnservedError(
                    f"the driver's file {file} of card {card.index} is not there; load the driver, or run "
                    f"nvidia-modprobe -c {card.index}; kubelet tries again"
                )
        return CardEdits(VERSION, own_edits(self.devices, [card.index for card in cards]))
