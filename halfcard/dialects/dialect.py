"""The interface of a dialect: how it reads amounts, what it refuses, and which claim it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ..claims import Claim
from ..problems import QUANTITY, Problem, Rule
from ..quantity import NANOS, InvalidQuantity, Quantity

MAX_AMOUNT: Final = 2**31 - 1
"""Node agents of the field keep amounts in 32 bits; beyond that they wrap to small grants."""


@dataclass(frozen=True, slots=True)
class ParsedAmount:
    """An amount in the resource's own unit.

    Attributes:
        amount: the number to store.
        note: what people should know about how it was read; empty for nothing.
        hint: a note about an amount that was left as it is.
    """

    amount: int
    note: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class AmountRefusal:
    """The amount means nothing, or two things."""

    rule: Rule
    fix: str


class Dialect(Protocol):
    """One system's words."""

    @property
    def name(self) -> str: ...

    @property
    def resources(self) -> frozenset[str]:
        """The resource names it knows."""

    @property
    def without_ids(self) -> frozenset[str]:
        """Resources for which kubelet allocates no device ids: nodes publish at most a total."""

    @property
    def core_limit(self) -> str | None:
        """The annotation that holds the burst ceiling, where the system has one."""

    def speaks(self, asked: Collection[str]) -> bool:
        """Are these resources said in its words?"""

    def read(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        """Reads a written amount. Reading the result again must give the same result."""

    def read_total(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        """The same for the budget of a namespace, which may be any number of cards."""

    def implied(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        """Returns resources that these amounts require and that the container does not list."""

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        """The rules of the system; `where` is the resources field of the container."""

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        """Makes the claim; None for no request. Amounts that break a rule may give any claim."""


def read_text(
    read: Callable[[str, Quantity], ParsedAmount | AmountRefusal], resource: str, text: str
) -> ParsedAmount | AmountRefusal:
    """Reads a text with a dialect's `read` or `read_total`, also where the text is no quantity."""
    try:
        return read(resource, Quantity.parse(text))
    except InvalidQuantity:
        return AmountRefusal(QUANTITY, "write digits, or a suffix that Kubernetes knows, such as Gi")


def whole_number(quantity: Quantity) -> ParsedAmount | AmountRefusal:
    amount = quantity.as_int()
    if amount is not None and 0 <= amount <= MAX_AMOUNT:
        return ParsedAmount(amount)
    if quantity.nanos > MAX_AMOUNT * NANOS:
        return AmountRefusal(QUANTITY, "use a number in the resource's own unit, without a suffix such as Gi")
    return AmountRefusal(QUANTITY, f"use {max(0, -(-quantity.nanos // NANOS))}")


def at(where: str, resource: str) -> str:
    """The field path of one amount."""
    return f'{where}.limits["{resource}"]'


class Plain:
    """A system without rules of its own: whole numbers, nothing implied."""

    core_limit: str | None = None

    @property
    def resources(self) -> frozenset[str]:
        raise NotImplementedError

    @property
    def without_ids(self) -> frozenset[str]:
        return frozenset()

    def speaks(self, asked: Collection[str]) -> bool:
        return not self.resources.isdisjoint(asked)

    def read(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        return whole_number(quantity)

    def read_total(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        return whole_number(quantity)

    def implied(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        return {}

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        return iter(())
