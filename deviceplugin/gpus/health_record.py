"""Encodes the unhealthy cards, so that a restart of the agent does not make them healthy.

Invariant: a record is valid until the machine boots again, which resets every card and restarts the clock.
"""

from __future__ import annotations

from typing import Final

import msgspec

from .card_health import CardFault, CardHealth
from .interface import Gpu


class _Ill(msgspec.Struct):
    gpu: Gpu
    fault: CardFault
    absent: str


class _Written(msgspec.Struct):
    boot: str
    ill: list[_Ill]


_WRITTEN: Final = msgspec.json.Decoder(_Written)


def encode_health(health: CardHealth, boot: str) -> bytes:
    """Encodes the cards that are unhealthy now; `boot` identifies the boot of the machine."""
    faults = [(gpu, fault) for gpu in health.gpus if (fault := health.faults.get(gpu.uuid)) and not fault.is_over]
    ill = [_Ill(gpu, fault, health.absent.get(gpu.uuid, "")) for gpu, fault in faults]
    return msgspec.json.encode(_Written(boot, ill))


def decode_health(content: bytes, boot: str) -> CardHealth:
    """Decodes a record; an unreadable one, or one of an earlier boot, is empty."""
    try:
        found = _WRITTEN.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return CardHealth()
    if found.boot != boot:
        return CardHealth()
    return CardHealth(
        tuple([each.gpu for each in found.ill]),
        {each.gpu.uuid: each.absent for each in found.ill if each.absent},
        {each.gpu.uuid: each.fault for each in found.ill},
    )
