"""gpu-manager's words: per cent of a card and units of 256 MiB, under whichever domain a company runs it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from .. import names
from ..claims import UNIT_MIB, WHOLE_CARD, Claim, memory_share, whole_cards
from ..problems import CORES, MEMORY_ALONE, MEMORY_UNITS, QUOTA_CORES, SHARE_NEEDS_MEMORY, Problem
from ..quantity import NANOS, Quantity
from .reading import Reading, Refusal, at, whole_number

_MIB: Final = 2**20
_UNIT_BYTES: Final = UNIT_MIB * _MIB
_HUNDREDTH: Final = NANOS // 100


@dataclass(frozen=True)
class Vcuda:
    """PREFIX/vcuda-core and PREFIX/vcuda-memory.

    Attributes:
        prefix: the domain of the resource names.
        memory_alone: whether memory without cores is a claim (Tuya shares by memory and leaves compute free).
    """

    name: str
    prefix: str
    memory_alone: bool
    core: str = field(init=False)
    memory: str = field(init=False)
    resources: frozenset[str] = field(init=False)
    core_limit: str | None = field(init=False)

    def __post_init__(self) -> None:
        core, memory = self.prefix + names.VCUDA_CORE_SUFFIX, self.prefix + names.VCUDA_MEMORY_SUFFIX
        for attribute, value in (
            ("core", core),
            ("memory", memory),
            ("resources", frozenset({core, memory})),
            ("core_limit", self.prefix + names.CORE_LIMIT_SUFFIX),
        ):
            object.__setattr__(self, attribute, value)

    def speaks(self, asked: Collection[str]) -> bool:
        return self.core in asked or self.memory in asked

    def read(self, resource: str, quantity: Quantity) -> Reading | Refusal:
        return _read_cores(quantity) if resource == self.core else _read_memory(quantity)

    def read_total(self, resource: str, quantity: Quantity) -> Reading | Refusal:
        return _read_total_cores(quantity) if resource == self.core else _read_total_memory(quantity)

    def implied(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        return {}

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        cores, memory = amounts.get(self.core, 0), amounts.get(self.memory, 0)
        if cores > WHOLE_CARD and cores % WHOLE_CARD:
            yield CORES.broken(at(where, self.core), cores, f"use {_nearest_cards(cores)}")
        if 0 < cores < WHOLE_CARD and not memory:
            yield SHARE_NEEDS_MEMORY.broken(
                at(where, self.memory),
                "nothing",
                f"add {self.memory}, in units of {UNIT_MIB} MiB (or write 5Gi)",
            )
        if memory and not cores and not self.memory_alone:
            yield MEMORY_ALONE.broken(at(where, self.core), "nothing", f"add {self.core}, 1-99 for a share of one card")

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        cores, memory = amounts.get(self.core, 0), amounts.get(self.memory, 0)
        if not cores and not memory:
            return None
        if cores >= WHOLE_CARD:
            cards = -(-cores // WHOLE_CARD)
            return whole_cards(cards, self.name, memory_mib=-(-memory * UNIT_MIB // cards) or None)
        return memory_share(memory * UNIT_MIB, self.name, cores_pct=cores or None)


def _read_cores(quantity: Quantity) -> Reading | Refusal:
    if 0 < quantity.nanos < NANOS:
        return _read_fraction(quantity)
    if quantity.nanos % NANOS:
        return Refusal(CORES, f"use {_nearest_cards(-(-quantity.nanos * WHOLE_CARD // NANOS))}")
    reading = whole_number(quantity)
    if isinstance(reading, Reading) and 1 <= reading.amount <= 9:
        return Reading(
            reading.amount,
            hint=f"{reading.amount} is {reading.amount} % of a card, {reading.amount} cards are {reading.amount}00",
        )
    return reading


def _read_fraction(quantity: Quantity) -> Reading | Refusal:
    """0.3 of a card is 30; finer than a hundredth cannot be given."""
    share, rest = divmod(quantity.nanos, _HUNDREDTH)
    if not rest:
        return Reading(share)
    return Refusal(CORES, f"use {max(share, 1)} or {share + 1}")


def _nearest_cards(cores: int) -> str:
    below = cores // WHOLE_CARD * WHOLE_CARD
    return f"{below} or {below + WHOLE_CARD}" if below > 0 else str(WHOLE_CARD)


def _read_memory(quantity: Quantity) -> Reading | Refusal:
    """Bytes where it can be nothing else; a decimal suffix says nothing, the API server itself writes 1000 as 1k."""
    if quantity.family == "binary" or quantity.nanos >= _MIB * NANOS:
        return _read_bytes(quantity)
    reading = whole_number(quantity)
    if isinstance(reading, Reading):
        return reading
    return Refusal(MEMORY_UNITS, f"use {max(0, -(-quantity.nanos // NANOS))}")


def _read_bytes(quantity: Quantity) -> Reading | Refusal:
    units, rest = divmod(quantity.nanos, _UNIT_BYTES * NANOS)
    units += 1 if rest else 0
    if not 0 <= units < _MIB:  # as many units would be read as bytes the next time
        return Refusal(MEMORY_UNITS, "use fewer: no card has 256 TiB")
    note = f"{quantity} was rounded up to {units} units of {UNIT_MIB} MiB" if rest else ""
    return Reading(units, note)


def _read_total_cores(quantity: Quantity) -> Reading | Refusal:
    """A whole number is per cent; a fraction can only be meant as cards."""
    if not quantity.nanos % NANOS:
        return whole_number(quantity)
    hundredths, rest = divmod(quantity.nanos, _HUNDREDTH)
    if rest or quantity.nanos < 0:
        return Refusal(QUOTA_CORES, f"use {max(hundredths, 0)} or {max(hundredths, 0) + 1}")
    return Reading(hundredths)


def _read_total_memory(quantity: Quantity) -> Reading | Refusal:
    """Rounded down: a budget never grants more than was written."""
    reading = _read_memory(quantity)
    if isinstance(reading, Reading) and reading.note:
        units = reading.amount - 1
        return Reading(units, f"{quantity} was rounded down to {units} units of {UNIT_MIB} MiB")
    return reading
