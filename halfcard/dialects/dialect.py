"""The base of all dialects: all that Halfcard knows of a system, with the defaults of a system without rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from ..cards import Card, CardLimit
from ..claims import MEMORY, Claim, Unit
from ..problems import QUANTITY, Problem
from ..quantity import NANOS, InvalidQuantity, Quantity
from .amounts import AmountRefusal, ParsedAmount
from .memory_amount import MOST_UNITS, is_many, rounded_down, units_of
from .record import PeerRecord

__all__ = ["MAX_AMOUNT", "AmountRefusal", "Dialect", "ParsedAmount", "at", "read_text", "whole_number"]

MAX_AMOUNT: Final = 2**31 - 1
"""Common node agents keep amounts in 32 bits; larger amounts would wrap to small ones."""


class Dialect:
    """One system's resource names, units and rules.

    A dialect defines `name`, `units` and `claim`. The defaults of the rest are those of a system without rules: whole
    numbers, nothing implied, no record.
    """

    name: str

    @property
    def core_limit(self) -> str | None:
        """The annotation that holds the core limit, where the system has one."""
        return None

    @property
    def without_ids(self) -> frozenset[str]:
        """Resources for which kubelet allocates no device ids, since a node has too many of them, such as MiB."""
        return frozenset()

    @property
    def per_card(self) -> frozenset[str]:
        """Resources of which a container with several cards gets its amount of each; native quota counts it once."""
        return frozenset()

    @property
    def companions(self) -> Mapping[str, str]:
        """Maps each resource that cannot be requested alone to the resource that must come with it."""
        return {}

    @property
    def record(self) -> PeerRecord | None:
        """The record that the system's own agent reads, where it reads one."""
        return None

    @property
    def examples(self) -> tuple[Mapping[str, int], ...]:
        """Requests as people write them, for the pages."""
        return ()

    @property
    def units(self) -> Mapping[str, Unit]:
        """Maps each resource to its unit; a resource without one is a part of an unknown amount."""
        raise NotImplementedError

    @cached_property
    def resources(self) -> frozenset[str]:
        """The resource names that it reads."""
        return frozenset(self.units)

    @property
    def offered(self) -> Collection[str]:
        """The resources that Halfcard's agent can publish; each has a unit."""
        return self.units

    def speaks(self, asked: Collection[str]) -> bool:
        """Returns whether a request for these resources is written in this dialect."""
        return not self.resources.isdisjoint(asked)

    def read(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        """Reads a written amount. Reading the result again must give the same result."""
        unit = self.units.get(resource)
        if unit is None or unit.counted != MEMORY:
            return whole_number(quantity)
        return units_of(quantity, unit.size, QUANTITY) if is_many(quantity) else whole_number(quantity, MOST_UNITS)

    def read_total(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        """Reads an amount in the budget of a namespace, which may be any number of cards."""
        unit = self.units.get(resource)
        reading = self.read(resource, quantity)
        return rounded_down(reading, quantity, unit.size) if unit else reading

    def implied(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        """Returns resources that these amounts require and that the container does not list."""
        return {}

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        """Applies the rules of the system; `where` is the path of the container's resources."""
        return iter(())

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        """Makes the claim; None for no request. Amounts that break a rule may give any claim."""
        raise NotImplementedError

    def variables(self, limits: Sequence[CardLimit], cards: Sequence[Card], pod_mib: int) -> dict[str, str]:
        """Returns the variables that the system's programs expect in a container; `pod_mib` is what its pod requests.

        A variable by which a container could widen its share also belongs in `halfcard.ways_to_cards`.

        `limits` and `cards` are in the order in which the container sees its cards.
        """
        return {}


def read_text(
    read: Callable[[str, Quantity], ParsedAmount | AmountRefusal], resource: str, text: str
) -> ParsedAmount | AmountRefusal:
    """Reads a text with a dialect's `read` or `read_total`, also where the text is no quantity."""
    try:
        return read(resource, Quantity.parse(text))
    except InvalidQuantity:
        return AmountRefusal(QUANTITY, "write digits, or a suffix that Kubernetes knows, such as Gi")


def whole_number(quantity: Quantity, most: int = MAX_AMOUNT) -> ParsedAmount | AmountRefusal:
    """Reads an amount that is in the resource's own unit; `most` is the largest number that a refusal may suggest."""
    amount = quantity.as_int()
    if amount is not None and 0 <= amount <= MAX_AMOUNT:
        return ParsedAmount(amount)
    if quantity.nanos > MAX_AMOUNT * NANOS:
        return AmountRefusal(QUANTITY, "use a number in the resource's own unit, without a suffix such as Gi")
    return AmountRefusal(QUANTITY, f"use {max(0, min(most, -(-quantity.nanos // NANOS)))}")


def at(where: str, resource: str) -> str:
    """Returns the field path of one amount."""
    return f'{where}.limits["{resource}"]'
