"""What one amount of a ledger counts: parses and writes the keys of ledgers, such as `cores per user=alice`.

The text is stored in ledgers, so its form must not change.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_PER: Final = " per "
_VALUE: Final = "="
_OF: Final = " of "
_MODEL: Final = "model "
_POOL: Final = "pool "


class AmountKey(NamedTuple):
    """The parts of one key; at most one of label, model and pool is set.

    Attributes:
        what: cores, memory, cards or shares.
        label: a pod label; pods with different values have separate amounts.
        value: the value of the label; None in the key of the limit, which is the same for each value.
        model: a card model, as a quota names it.
        pool: a node pool.
    """

    what: str
    label: str | None = None
    value: str | None = None
    model: str | None = None
    pool: str | None = None

    def __str__(self) -> str:
        if self.label is not None:
            limit = f"{self.what}{_PER}{self.label}"
            return limit if self.value is None else f"{limit}{_VALUE}{self.value}"
        return f"{self.what}{_OF}{self.place}" if self.place else self.what

    @property
    def place(self) -> str:
        """Where it is counted, as statuses show it: `model A100` or `pool lab`; empty for everywhere."""
        if self.model is not None:
            return f"{_MODEL}{self.model}"
        return "" if self.pool is None else f"{_POOL}{self.pool}"

    @classmethod
    def at(cls, what: str, place: str) -> AmountKey:
        """Returns the key for a place that a status shows."""
        return cls.parse(f"{what}{_OF}{place}")

    @classmethod
    def parse(cls, text: str) -> AmountKey:
        """Reads a stored key; a text in no known form is taken as the name of what is counted."""
        limit, has_value, value = text.partition(_VALUE)
        what, is_per, label = limit.partition(_PER)
        if is_per and _OF not in what:
            return cls(what, label, value if has_value else None)
        what, _, place = text.partition(_OF)
        if place.startswith(_MODEL):
            return cls(what, model=place.removeprefix(_MODEL))
        return cls(what, pool=place.removeprefix(_POOL)) if place.startswith(_POOL) else cls(text)


# A ledger may have thousands of label values, and each reservation reads all of them: the two functions below make no
# tuple. Only label values and names of models and pools may contain "=" or " of ".


def limit_key(text: str) -> str:
    """Returns the key under which the limit of this amount is stored."""
    limit, has_value, _ = text.partition(_VALUE)
    return limit if has_value and _OF not in limit else text


def label_value(text: str) -> str | None:
    """Returns the label value of a key; None for a key without one."""
    limit, has_value, value = text.partition(_VALUE)
    return value if has_value and _OF not in limit else None
