"""gpu-manager's resources: per cent of a card and units of 256 MiB, under the domain of each company that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from .. import names
from ..claims import CORES, MEMORY, UNIT_MIB, WHOLE_CARD, Claim, ContainerStage, Need, Unit, memory_share, whole_cards
from ..problems import CORES as CORES_RULE
from ..problems import MEMORY_ALONE, MEMORY_UNITS, QUOTA_CORES, SHARE_NEEDS_MEMORY, Problem
from ..quantity import NANOS, Quantity
from .dialect import MAX_AMOUNT, AmountRefusal, Dialect, ParsedAmount, at, whole_number
from .memory_amount import MOST_UNITS, is_bytes, rounded_down, units_of
from .record import NOT_UNDERSTOOD, Named, PeerRecord, PlacedPod, indices, split

_CARDS_OF_A_NODE: Final = 16
"""The most that an amount with decimals is taken for: 30.5 means per cent."""

_HUNDREDTH: Final = NANOS // 100
_MOST_CARDS: Final = MAX_AMOUNT // WHOLE_CARD


@dataclass(frozen=True)
class Vcuda(Dialect):
    """PREFIX/vcuda-core and PREFIX/vcuda-memory.

    Attributes:
        prefix: the domain of the resource names.
        memory_alone: whether memory without cores is a claim (Tuya shares by memory and leaves compute free).
    """

    name: str
    prefix: str
    memory_alone: bool

    @cached_property
    def core(self) -> str:
        return self.prefix + names.VCUDA_CORE_SUFFIX

    @cached_property
    def memory(self) -> str:
        return self.prefix + names.VCUDA_MEMORY_SUFFIX

    @cached_property
    def core_limit(self) -> str:
        return self.prefix + names.CORE_LIMIT_SUFFIX

    @cached_property
    def units(self) -> Mapping[str, Unit]:
        return {self.core: Unit(CORES), self.memory: Unit(MEMORY, UNIT_MIB)}

    @cached_property
    def companions(self) -> Mapping[str, str]:
        return {} if self.memory_alone else {self.memory: self.core}

    @cached_property
    def examples(self) -> tuple[Mapping[str, int], ...]:
        return ({self.memory: 20},) if self.memory_alone else ({self.core: 30, self.memory: 20}, {self.core: 200})

    @cached_property
    def record(self) -> PeerRecord:
        write = partial(_write_record, self.prefix)
        return PeerRecord("gpu-manager", _read_record, write, names.PREDICATE_TIME_SUFFIX, _read_chosen)

    def read(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        return _read_cores(quantity) if resource == self.core else _read_memory(quantity)

    def read_total(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        return (
            _read_total_cores(quantity)
            if resource == self.core
            else rounded_down(_read_memory(quantity), quantity, UNIT_MIB)
        )

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        cores, memory = amounts.get(self.core, 0), amounts.get(self.memory, 0)
        if cores > WHOLE_CARD and cores % WHOLE_CARD:
            yield CORES_RULE.broken(at(where, self.core), cores, f"use {_nearest_cards(cores)}")
        if 0 < cores < WHOLE_CARD and not memory:
            yield SHARE_NEEDS_MEMORY.broken(
                at(where, self.memory),
                amounts.get(self.memory),
                f"add {self.memory}, such as 5Gi or 20 units of {UNIT_MIB} MiB",
            )
        if memory and not cores and not self.memory_alone:
            fix = f"add {self.core}: 1-99 for a share of one card"
            yield MEMORY_ALONE.broken(at(where, self.core), amounts.get(self.core), fix)

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        cores, memory = amounts.get(self.core, 0), amounts.get(self.memory, 0)
        if not cores and not memory:
            return None
        if cores >= WHOLE_CARD:
            cards = -(-cores // WHOLE_CARD)
            return whole_cards(cards, self.name, memory_mib=-(-memory * UNIT_MIB // cards) or None)
        return memory_share(memory * UNIT_MIB or None, self.name, cores_pct=cores or None)


def _read_cores(quantity: Quantity) -> ParsedAmount | AmountRefusal:
    if 0 < quantity.nanos < NANOS:
        return _read_fraction(quantity)
    if quantity.nanos % NANOS:
        return AmountRefusal(CORES_RULE, f"use {_nearest(quantity)}")
    reading = whole_number(quantity)
    if isinstance(reading, ParsedAmount) and 1 <= reading.amount <= 9:
        return ParsedAmount(reading.amount, hint=_hint(reading.amount))
    return reading


def _hint(cores: int) -> str:
    return "1 card is 100" if cores == 1 else f"{cores} cards are {cores * WHOLE_CARD}"


def _read_fraction(quantity: Quantity) -> ParsedAmount | AmountRefusal:
    """Reads cards: 0.3 is 30; the smallest unit is a hundredth."""
    share, rest = divmod(quantity.nanos, _HUNDREDTH)
    if not rest:
        return ParsedAmount(share)
    return AmountRefusal(CORES_RULE, f"use {share} or {share + 1}" if share else "use 1")


def _nearest(quantity: Quantity) -> str:
    """Returns amounts near one with decimals: of cards, or of per cent where no node has so many cards."""
    below = quantity.nanos // NANOS
    if below < _CARDS_OF_A_NODE:
        return _nearest_cards(-(-quantity.nanos * WHOLE_CARD // NANOS))
    return f"{below} or {below + 1}" if below < WHOLE_CARD else _nearest_cards(below)


def _nearest_cards(cores: int) -> str:
    below = min(cores // WHOLE_CARD, _MOST_CARDS - 1) * WHOLE_CARD
    return f"{below} or {below + WHOLE_CARD}" if below > 0 else str(WHOLE_CARD)


def _read_memory(quantity: Quantity) -> ParsedAmount | AmountRefusal:
    if is_bytes(quantity):
        return units_of(quantity, UNIT_MIB, MEMORY_UNITS)
    reading = whole_number(quantity)
    if isinstance(reading, ParsedAmount):
        return reading
    return AmountRefusal(
        MEMORY_UNITS, f"use {max(0, min(MOST_UNITS, -(-quantity.nanos // NANOS)))}, or a suffix such as Gi"
    )


def _read_total_cores(quantity: Quantity) -> ParsedAmount | AmountRefusal:
    """Reads a whole number as per cent, and a fraction as cards."""
    if not quantity.nanos % NANOS:
        return whole_number(quantity)
    reading = whole_number(Quantity(quantity.nanos * WHOLE_CARD))
    if isinstance(reading, ParsedAmount):
        return reading
    below = max(0, min(quantity.nanos // _HUNDREDTH, MAX_AMOUNT - 1))
    return AmountRefusal(QUOTA_CORES, f"use {below} or {below + 1}")


# --- the record: indices per container, under the domain of the resources --------------------------------------------

_NODE: Final = names.PREDICATE_NODE_SUFFIX
_ASSIGNED: Final = "true"


def _write_record(prefix: str, placed: PlacedPod, wanted: list[int], now_ns: int) -> dict[str, str]:
    return {
        **{_cards_key(prefix, placed.needs[number]): indices(placed.cards(number)) for number in wanted},
        prefix + _NODE: placed.node.name,
        prefix + names.PREDICATE_TIME_SUFFIX: str(now_ns),
        prefix + names.GPU_ASSIGNED_SUFFIX: "false",
    }


def _cards_key(prefix: str, need: Need) -> str:
    return f"{prefix}{names.PREDICATE_CARDS_SUFFIX}{need.order}"


def _read_record(annotations: Mapping[str, str], node: str, needs: Sequence[Need]) -> Named | None:
    domains = _domains(annotations, _NODE)
    if not domains:
        return None
    if annotations[domains[0] + _NODE] != node:
        return NOT_UNDERSTOOD
    return _listed(annotations, domains[0], needs)


def _read_chosen(annotations: Mapping[str, str], node: str, needs: Sequence[Need]) -> Named | None:
    """Reads which cards gpu-manager's agent has assigned.

    It chooses whole cards itself, whatever a scheduler recorded, and writes this annotation also without a record.
    """
    for domain in _domains(annotations, names.GPU_ASSIGNED_SUFFIX):
        is_assigned = annotations[domain + names.GPU_ASSIGNED_SUFFIX] == _ASSIGNED
        if is_assigned and annotations.get(domain + _NODE, node) == node:
            named = _listed(annotations, domain, needs)
            return named if named and any(named) else None
    return None


def _domains(annotations: Mapping[str, str], suffix: str) -> list[str]:
    return [key.removesuffix(suffix) for key in annotations if key.endswith(suffix)]


def _listed(annotations: Mapping[str, str], domain: str, needs: Sequence[Need]) -> Named | None:
    """Returns None for a pod with a claim in an init container: gpu-manager does not know init containers."""
    if any(need.stage is not ContainerStage.APP for need in needs):
        return None
    return tuple([split(annotations.get(_cards_key(domain, need))) for need in needs])
