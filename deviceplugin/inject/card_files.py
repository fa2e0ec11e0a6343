"""What a container needs to reach its cards: NVIDIA's own description of them where there is one, else their files."""

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
    """Of this node.

    Attributes:
        devices: the folder of device files.
        descriptions: NVIDIA's own, read anew at each call.
        are_made_up: the cards are not there, so neither are their files.
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
