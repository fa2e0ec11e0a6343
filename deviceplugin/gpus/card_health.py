"""Decides which cards get no new containers, from the incidents and the state that the driver reports.

Invariant: a card with a critical error is healthy again after it was away and came back, which takes a reset or a
reload; or, where the error does not require one, after a quiet time, which each relapse within a day doubles. So
neighbours are not placed on a card that keeps failing, and one bad program does not cost a card for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from .interface import Gpu, Incident

IGNORED: Final = frozenset({13, 31, 43, 45, 68, 109})
"""Errors that a program causes for itself; NVIDIA's plugin ignores the same."""

_ACTION_CHANGED: Final = 154  # the wanted recovery action has changed: Gpu.trouble has the new one
_ASK_FOR_RESET: Final = frozenset({48, 62, 64, 79, 95, 119, 120, 140, 143})

_MEANINGS: Final = {
    48: "two bits of its memory flipped",
    62: "its micro-controller halted",
    63: "a row of its memory was replaced",
    64: "a row of its memory could not be replaced",
    74: "an NVLink failed",
    79: "it fell off the bus",
    92: "many bits of its memory flip",
    94: "a memory error hit one program",
    95: "a memory error hit all programs",
    119: "its system processor does not answer",
    120: "its system processor failed",
    140: "its memory had an error that could not be corrected",
    143: "it could not be initialised",
}

QUIET_S: Final = 600.0
LONGEST_QUIET_S: Final = 24 * 3600.0
_FORGOTTEN_S: Final = 24 * 3600.0

_NOT_SHOWN: Final = "the driver has lost it or does not list it any more"


class CardFault(NamedTuple):
    """The latest critical error of a card, and how many errors it has had within about a day."""

    xid: int
    at: float
    relapses: int = 1
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class CardHealth:
    """The health of all known cards, by uuid.

    Attributes:
        gpus: as last read; missing cards come last.
        absent: why the driver does not list them.
    """

    gpus: tuple[Gpu, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, CardFault] = field(default_factory=dict)


def after_incident(health: CardHealth, incident: Incident, now: float) -> CardHealth:
    """Records an incident; one that names no card counts for every card."""
    if incident.xid in IGNORED or incident.xid == _ACTION_CHANGED:
        return health
    uuids = [incident.uuid] if incident.uuid else [gpu.uuid for gpu in health.gpus]
    faults = {uuid: _fault(health.faults.get(uuid), incident.xid, now) for uuid in uuids}
    return replace(health, faults={**health.faults, **faults})


def _fault(earlier: CardFault | None, xid: int, now: float) -> CardFault:
    if earlier is None or now - earlier.at > _quiet_s(earlier) + _FORGOTTEN_S:
        return CardFault(xid, now)
    if earlier.is_over:
        return CardFault(xid, now, earlier.relapses + 1)
    asks = earlier.xid if earlier.xid in _ASK_FOR_RESET else xid
    return CardFault(asks, now, earlier.relapses)


def after_read(health: CardHealth, gpus: Sequence[Gpu], now: float) -> CardHealth:
    """Records the cards that the driver lists; a missing card is remembered, since pods may hold it."""
    shown = {gpu.uuid for gpu in gpus}
    missing = [gpu for gpu in health.gpus if gpu.uuid not in shown]
    faults = {uuid: fault._replace(is_over=True) for uuid, fault in _ended(health, gpus, now)}
    return CardHealth((*gpus, *missing), {gpu.uuid: _NOT_SHOWN for gpu in missing}, {**health.faults, **faults})


def _ended(health: CardHealth, gpus: Sequence[Gpu], now: float) -> list[tuple[str, CardFault]]:
    faults = [(gpu.uuid, health.faults[gpu.uuid]) for gpu in gpus if not gpu.trouble and gpu.uuid in health.faults]
    return [(uuid, fault) for uuid, fault in faults if uuid in health.absent or _is_quiet(fault, now)]


def _is_quiet(fault: CardFault, now: float) -> bool:
    return fault.xid not in _ASK_FOR_RESET and now - fault.at >= _quiet_s(fault)


def _quiet_s(fault: CardFault) -> float:
    return min(QUIET_S * 2.0 ** min(fault.relapses - 1, 30), LONGEST_QUIET_S)


def after_failure(health: CardHealth, why: str) -> CardHealth:
    """Records that the driver does not answer."""
    return replace(health, absent={gpu.uuid: why for gpu in health.gpus})


def why_not(health: CardHealth) -> dict[str, str]:
    """Returns the cards that get no new containers, with the reason."""
    reasons = {gpu.uuid: _reasons(health, gpu) for gpu in health.gpus}
    return {uuid: "; ".join(texts) for uuid, texts in reasons.items() if texts}


def _reasons(health: CardHealth, gpu: Gpu) -> list[str]:
    fault = health.faults.get(gpu.uuid)
    latest = _fault_text(fault) if fault and not fault.is_over else ""
    return [reason for reason in (health.absent.get(gpu.uuid, gpu.trouble), latest) if reason]


def _fault_text(fault: CardFault) -> str:
    meaning = _MEANINGS.get(fault.xid, "a critical error")
    asked = ": reset the card" if fault.xid in _ASK_FOR_RESET else ""
    return f"Xid {fault.xid}, {meaning}{asked}"
