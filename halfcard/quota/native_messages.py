"""Words the messages about ResourceQuotas: the API server's own sentence, and what is missing in cards and GiB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from .. import names
from ..claims import CARDS, CORES, MEMORY, SHARES, WHOLE_CARD, Unit
from ..dialects import Dialects
from ..problems import MAX_MESSAGE_BYTES, clipped
from ..quantity import NANOS, Quantity
from .derived_resources import DerivedSettings
from .ledger import Amounts
from .native_quota import Cost, ExceededQuota, ResourceQuota, Shortfall
from .native_usage import Drift

_MIB_OF_GIB: Final = 1024


def spelled(unit: Unit, amount: Quantity) -> str:
    if unit.noun:
        return _counted(unit.noun)(amount.nanos / NANOS)
    return _WORDS[unit.counted](amount.nanos * unit.size / NANOS)


def _counted(noun: str) -> Callable[[float], str]:
    return lambda number: f"{number:g} {noun}{'' if number == 1 else 's'}"


_WORDS: Final[Mapping[str, Callable[[float], str]]] = {
    CORES: lambda number: f"{number / WHOLE_CARD:.2f} card",
    MEMORY: lambda number: f"{number / _MIB_OF_GIB:g} GiB",
    CARDS: _counted("card"),
    SHARES: _counted("time slice"),
}


def units(dialects: Dialects, derived: DerivedSettings | None = None) -> dict[str, Unit]:
    """Maps each resource to its unit; for a resource that is missing, messages state the plain number."""
    added = {names.DERIVED_CARDS: Unit(CARDS), names.DERIVED_SHARES: Unit(SHARES, noun="share")}
    own = {resource: unit for dialect in dialects.known for resource, unit in dialect.units.items()}
    return own if derived is None else own | added


def exceeded_message(short: Iterable[ExceededQuota], table: Mapping[str, Unit]) -> str:
    """All quotas that would be exceeded, in one line that fits a Kubernetes status."""
    return clipped(" | ".join(exceeded(each, table) for each in short), MAX_MESSAGE_BYTES)


def exceeded(short: ExceededQuota, table: Mapping[str, Unit]) -> str:
    sums = [f"{word}: {','.join(f'{each.key}={part(each)}' for each in short.shortfalls)}" for word, part in _PARTS]
    needed = "; ".join(_needed(each, table) for each in short.shortfalls)
    return f"exceeded quota: {short.title}, {', '.join(sums)} ({needed})"


_PARTS: Final[tuple[tuple[str, Callable[[Shortfall], Quantity]], ...]] = (
    ("requested", lambda each: each.asked),
    ("used", lambda each: each.used),
    ("limited", lambda each: each.hard),
)


def _needed(short: Shortfall, table: Mapping[str, Unit]) -> str:
    unit = table.get(short.resource)
    free = Quantity(max(short.hard.nanos - short.used.nanos, 0))
    missing = Quantity(short.used.nanos + short.asked.nanos - short.hard.nanos)
    asked, left = (spelled(unit, each) if unit else str(each) for each in (short.asked, free))
    return f"{missing} more needed: {asked} asked, {left} free"


def never_counted(quota: ResourceQuota, resources: Iterable[str]) -> str:
    """Explains to the author of a quota what is never counted; empty where all of it counts."""
    written = ", ".join(f"{key}={quota.hard[key]}" for key in quota.uncounted(resources))
    return written and (
        f"Kubernetes accepts {written} and never counts it, so it limits nothing: "
        f"`halfcard quota repair {quota.meta.namespace}` adds what counts"
    )


def drifted(found: Iterable[Drift]) -> str:
    differences = ", ".join(f"{each.key}={each.used}, but its pods use {each.real}" for each in found)
    return f"wrong usage: Kubernetes reports {differences}; it recounts when spec.hard changes"


def in_words_of(charge: Amounts, table: Mapping[str, Unit]) -> Cost:
    """Converts a charge into the resources of each dialect, since the dialect of a future pod is unknown."""
    asked = {resource: -(-charge.get(unit.counted, 0) // unit.size) for resource, unit in table.items()}
    return {resource: Quantity.of(amount) for resource, amount in asked.items() if amount}
