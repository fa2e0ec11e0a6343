"""What a dialect makes of a written amount."""

from __future__ import annotations

from dataclasses import dataclass

from ..problems import Rule


@dataclass(frozen=True, slots=True)
class ParsedAmount:
    """An amount in the resource's own unit.

    Attributes:
        amount: the number to store.
        note: how the amount was rounded, for a warning; empty where it was not.
        hint: what people often mean by such an amount, for a warning; empty for none.
    """

    amount: int
    note: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class AmountRefusal:
    """The amount has no meaning, or two."""

    rule: Rule
    fix: str
