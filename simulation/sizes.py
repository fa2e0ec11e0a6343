"""Classifies requests by size, for the report of waiting pods."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from .workload import MILLI, TracePod

_MANY: Final = 8 * MILLI


class Size(StrEnum):
    NONE = "no card"
    PART = "part of a card"
    ONE = "one card"
    SEVERAL = "2 to 7 cards"
    MANY = "8 cards or more"


def size_of(pod: TracePod) -> Size:
    if pod.milli == 0:
        return Size.NONE
    if pod.milli < MILLI:
        return Size.PART
    if pod.milli >= _MANY:
        return Size.MANY
    return Size.ONE if pod.milli == MILLI else Size.SEVERAL
