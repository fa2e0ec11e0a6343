"""What the stand-in for NVIDIA's library shall know, written while a program uses it.

A program finds it by `StandIn(folder, stand_in_cards(2)).environment`; then .xid(uuid, 79), .fail, .recover, .unload,
.reload, .processes and .change hold from its next call of the library on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pynvml  # type: ignore[import-untyped]

from .build import library_folder

VARIABLE: Final = "HALFCARD_NVML"
"""Names the file that the library reads."""

_EVENTS_KEPT: Final = 200
_NO_CARD: Final = "-"


class StandInProcess(NamedTuple):
    """`kind` is C, G or M: compute, graphics, through MPS; memory below 0 is not reported."""

    pid: int
    memory_mib: int = 0
    cores_pct: int = 0
    kind: str = "C"


class Pair(NamedTuple):
    """How two cards are connected: their common ancestor on PCI, as NVML numbers it, and NVLinks between them."""

    one: str
    other: str
    level: int = pynvml.NVML_TOPOLOGY_SYSTEM
    nvlinks: int = 0


@dataclass(frozen=True, slots=True)
class StandInCard:
    """A number below 0 is one that the card does not support.

    Attributes:
        switch_links: its NVLinks to an NVSwitch.
        recovery: what the driver wants done, by NVML_GPU_RECOVERY_ACTION_*.
        unmappable: 1 where rows of its memory can no longer be replaced.
        limits: 1 where the driver limits memory by cgroup.
        fails: the error that every call about it returns; 0 for none.
        lacks: the error by the name of a function of the library.
    """

    uuid: str
    minor: int = 0
    model: str = "Tesla T4"
    memory_mib: int = 15109
    reserved_mib: int = 0
    used_mib: int = 0
    pci: str = "00000000:3B:00.0"
    numa: int = -1
    mig: int = -1
    cores_pct: int = 0
    switch_links: int = 0
    recovery: int = pynvml.NVML_GPU_RECOVERY_ACTION_NONE
    unmappable: int = 0
    limits: int = 0
    fails: int = 0
    lacks: Mapping[str, int] = field(default_factory=dict)
    processes: tuple[StandInProcess, ...] = ()


def stand_in_cards(count: int, **alike: Any) -> list[StandInCard]:
    """Returns this many cards, each with its own uuid, minor and place."""
    return [
        StandInCard(uuid=f"GPU-{minor:08d}", minor=minor, pci=f"00000000:{0x10 + minor:02X}:00.0", **alike)
        for minor in range(count)
    ]


class StandIn:
    """The driver of one machine, in a folder of its own; every change holds from the next call of the library on."""

    def __init__(self, folder: Path, cards: Sequence[StandInCard] = (), pairs: Sequence[Pair] = ()) -> None:
        self._file = folder / "nvml.conf"
        self._cards = {card.uuid: card for card in cards}
        self._pairs = tuple(pairs)
        self._load = self._loads = 1
        self._unfit = 0
        self._events: list[str] = []
        self._reported = 0
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that shall find this driver."""
        return {"LD_LIBRARY_PATH": str(library_folder()), VARIABLE: str(self._file)}

    @property
    def cards(self) -> list[StandInCard]:
        return list(self._cards.values())

    @cards.setter
    def cards(self, cards: Sequence[StandInCard]) -> None:
        self._cards = {card.uuid: card for card in cards}
        self._write()

    @property
    def pairs(self) -> list[Pair]:
        return list(self._pairs)

    @pairs.setter
    def pairs(self, pairs: Sequence[Pair]) -> None:
        self._pairs = tuple(pairs)
        self._write()

    def change(self, uuid: str, **changes: Any) -> None:
        """Of one card, by the names of StandInCard."""
        self._cards[uuid] = replace(self._cards[uuid], **changes)
        self._write()

    def processes(self, uuid: str, *processes: StandInProcess) -> None:
        self.change(uuid, processes=processes)

    def memory_limits(self) -> list[tuple[str, str, int]]:
        """Returns what was set: the card, the cgroup and the hard limit in MiB."""
        file = self._file.with_name(self._file.name + ".limits")
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        assert all(soft == "0" for _, _, soft, _ in lines)
        return [(card, cgroup, int(hard) >> 20) for card, cgroup, _, hard in lines]

    def fail(self, uuid: str, error: int = pynvml.NVML_ERROR_GPU_IS_LOST) -> None:
        """A lost card stays lost for a client that knew it, until that opens the library again."""
        self.change(uuid, fails=error)

    def recover(self, uuid: str) -> None:
        self.change(uuid, fails=0)

    def xid(self, uuid: str, xid: int) -> None:
        """Of a card, of none where `uuid` is empty."""
        self._report(uuid, pynvml.nvmlEventTypeXidCriticalError, xid)

    def double_bit_error(self, uuid: str) -> None:
        self._report(uuid, pynvml.nvmlEventTypeDoubleBitEccError, 1)

    def unload(self) -> None:
        """The driver is taken out of the kernel."""
        self._load = 0
        self._write()

    def reload(self) -> None:
        """Loads the driver, again if it is loaded: handles from before are invalid."""
        self._loads += 1
        self._load = self._loads
        self._write()

    def refuse(self, error: int) -> None:
        """What opening the library answers from now on; 0 for nothing amiss."""
        self._unfit = error
        self._write()

    def _report(self, uuid: str, event: int, data: int) -> None:
        self._reported += 1
        self._events = [*self._events, f"event {self._reported} {uuid or _NO_CARD} {event} {data}"][-_EVENTS_KEPT:]
        self._write()

    def _write(self) -> None:
        lines = [f"load {self._load}", "driver 580.105.08", f"unfit {self._unfit}"]
        lines += [f"pair {pair.one} {pair.other} {pair.level} {pair.nvlinks}" for pair in self._pairs]
        lines += self._events
        for card in self._cards.values():
            lines += _lines(card)
        beside = self._file.with_suffix(".new")
        beside.write_text("\n".join(lines) + "\n")
        beside.rename(self._file)


def _lines(card: StandInCard) -> list[str]:
    numbers = {
        "minor": card.minor,
        "total": card.memory_mib,
        "reserved": card.reserved_mib,
        "used": card.used_mib,
        "numa": card.numa,
        "mig": card.mig,
        "busy": card.cores_pct,
        "recovery": card.recovery,
        "unmappable": card.unmappable,
        "switch": card.switch_links,
        "limits": card.limits,
        "fails": card.fails,
    }
    return [
        f"card {card.uuid}",
        f"model {card.model}",
        f"pci {card.pci}",
        *(f"{key} {number}" for key, number in numbers.items()),
        *(f"lacks {function} {error}" for function, error in card.lacks.items()),
        *(f"process {one.kind} {one.pid} {one.memory_mib} {one.cores_pct}" for one in card.processes),
    ]
