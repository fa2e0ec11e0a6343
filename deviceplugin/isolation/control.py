"""Turns the limits of a container into the content of its control file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from halfcard.cards import CardLimit
from halfcard.isolation.shared_files import MOST_CARDS, NO_LIMIT, CardControl

from ..inject.cdi import Edits
from .way_in import NotHeldError

_UUID: Final = re.compile(r"GPU-([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})", re.IGNORECASE)
_MIB: Final = 1 << 20
_OF_1000: Final = 10
"""Per cent, in 1/1000."""


class Held(NamedTuple):
    """What a held container gets: the edits, and the content of its control file."""

    edits: Edits
    cards: Sequence[CardControl]


def is_share(limits: Sequence[CardLimit]) -> bool:
    """Returns whether a container has limits; those of whole cards and time slices have none."""
    return any(each.cores_pct is not None or each.memory_mib is not None for each in limits)


def controls(limits: Sequence[CardLimit]) -> list[CardControl]:
    """Returns the controls of a container's cards.

    Raises:
        NotHeldError: a card has no uuid of NVIDIA's form, or there are too many cards.
    """
    if len(limits) > MOST_CARDS:
        raise NotHeldError(f"got a container with shares of {len(limits)} cards; at most {MOST_CARDS} can be held")
    return [_control(each) for each in limits]


def _control(limit: CardLimit) -> CardControl:
    uuid = _UUID.fullmatch(limit.uuid)
    if uuid is None:
        raise NotHeldError(f'card {limit.index}: got the uuid "{limit.uuid}"; CUDA names cards GPU-8-4-4-4-12 digits')
    return CardControl(
        bytes.fromhex("".join(uuid.groups())),
        memory=_times(limit.memory_mib, _MIB),
        share=_times(limit.cores_pct, _OF_1000),
        ceiling=_times(limit.cores_limit_pct, _OF_1000),
    )


def _times(amount: int | None, unit: int) -> int:
    return NO_LIMIT if amount is None else amount * unit
