"""Reads amounts of memory that are written in bytes, where the resource counts larger units."""

from __future__ import annotations

from typing import Final

from ..problems import Rule
from ..quantity import NANOS, Quantity
from .amounts import AmountRefusal, ParsedAmount

_MIB: Final = 2**20
MOST_UNITS: Final = _MIB - 1
"""A number from 1 MiB on can only mean bytes: no card has as many units."""


def is_many(quantity: Quantity) -> bool:
    """Returns whether no card has as many units, so that the amount can only be bytes."""
    return quantity.nanos > MOST_UNITS * NANOS + NANOS - 1


def is_bytes(quantity: Quantity) -> bool:
    """Returns whether the amount is written in bytes, also a few, judged by the API server's own spelling.

    A decimal suffix proves nothing: the API server itself writes 1000 as 1k.
    """
    return is_many(quantity) or (quantity.nanos > 0 and str(quantity).endswith("i"))


def units_of(quantity: Quantity, unit_mib: int, rule: Rule) -> ParsedAmount | AmountRefusal:
    """Converts bytes, and rounds up."""
    units, rest = divmod(quantity.nanos, unit_mib * _MIB * NANOS)
    units += 1 if rest else 0
    if units > MOST_UNITS:  # as many units would be read as bytes the next time
        return AmountRefusal(rule, f"use fewer: no card has {MOST_UNITS * unit_mib // _MIB + 1} TiB")
    note = f"{quantity} was rounded up to {units} units of {unit_mib} MiB" if rest else ""
    return ParsedAmount(units, note)


def rounded_down(
    reading: ParsedAmount | AmountRefusal, quantity: Quantity, unit_mib: int
) -> ParsedAmount | AmountRefusal:
    """Rounds bytes of a budget down, which never allows more than was written."""
    if isinstance(reading, ParsedAmount) and reading.note:
        units = reading.amount - 1
        return ParsedAmount(units, f"{quantity} was rounded down to {units} units of {unit_mib} MiB")
    return reading
