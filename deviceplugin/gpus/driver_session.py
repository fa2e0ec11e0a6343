"""One session with the driver, and the cards that were present when it was opened."""

from __future__ import annotations

import ctypes
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pynvml  # type: ignore[import-untyped]

from .card_facts import KnownCard, read_card, read_state
from .card_load import load
from .driver import answer_or, close_driver, open_driver
from .interface import Gpu, GpusError, Incident, Load
from .links import LinkEnd, links
from .memory_limits import limit_memory

_DOUBLE_BIT_XID: Final = 48
_REPORTED: Final = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError


class Session:
    """One session of the driver; `wait` may run at the same time as one other call; all raise NVMLError.

    Attributes:
        is_doubtful: a card is missing or in trouble; only a reopened driver sees it come back.
    """

    def __init__(self, sysfs: Path) -> None:
        open_driver()
        try:
            self._count = pynvml.nvmlDeviceGetCount()
            self._cards = _linked([card for index in range(self._count) if (card := read_card(index, sysfs))])
            self._by_address = {_address(card.handle): uuid for uuid, card in self._cards.items()}
            self._events = _listening([card.handle for card in self._cards.values()])
        except BaseException:
            close_driver()
            raise
        self.opened_at = time.monotonic()
        self.is_doubtful = False

    def close(self) -> None:
        if self._events is not None:
            _free(self._events)
        close_driver()

    def read(self) -> tuple[Gpu, ...]:
        gpus = tuple([gpu for card in self._cards.values() if (gpu := read_state(card))])
        is_complete = len(gpus) == self._count == pynvml.nvmlDeviceGetCount()
        self.is_doubtful = not is_complete or any(gpu.trouble for gpu in gpus)
        return gpus

    def load(self, uuid: str) -> Load:
        return load(self._handle(uuid))

    def limit_memory(self, uuid: str, cgroup: str, mib: int) -> None:
        limit_memory(self._handle(uuid), cgroup, mib)

    def _handle(self, uuid: str) -> Any:
        if uuid not in self._cards:
            raise GpusError(f'the driver shows no card "{uuid}", but {", ".join(self._cards) or "none"}')
        return self._cards[uuid].handle

    @property
    def has_events(self) -> bool:
        """Returns whether any card reports incidents."""
        return self._events is not None

    def wait(self, timeout_s: float) -> tuple[Incident, ...]:
        try:
            event = pynvml.nvmlEventSetWait_v2(self._events, int(timeout_s * 1000))
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_TIMEOUT:
                return ()
            raise
        is_xid = event.eventType == pynvml.nvmlEventTypeXidCriticalError
        xid = int(event.eventData) if is_xid else _DOUBLE_BIT_XID
        return (Incident(self._by_address.get(_address(event.device), ""), xid),)


def _linked(cards: list[KnownCard]) -> dict[str, KnownCard]:
    strengths = links([LinkEnd(card.gpu.minor, card.gpu.pci, card.handle) for card in cards])
    return {card.gpu.uuid: card._replace(gpu=card.gpu._replace(links=strengths[card.gpu.minor])) for card in cards}


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _listening(handles: list[Any]) -> Any:
    """Returns a set of events; None where no card reports any."""
    events = answer_or(None, pynvml.nvmlEventSetCreate)
    if events is None or any([answer_or(None, _register, handle, events) for handle in handles]):  # noqa: C419 - each one
        return events
    _free(events)
    return None


def _register(handle: Any, events: Any) -> int:
    types = pynvml.nvmlDeviceGetSupportedEventTypes(handle) & _REPORTED
    if types:
        pynvml.nvmlDeviceRegisterEvents(handle, types, events)
    return int(types)


def _free(events: Any) -> None:
    with suppress(pynvml.NVMLError):  # the driver is gone
        pynvml.nvmlEventSetFree(events)
