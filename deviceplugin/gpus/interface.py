"""What the agent wants to know of the machine's cards, and nothing more."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class GpusError(Exception):
    """The driver cannot be asked; the text says what, why and what to do."""


class Gpu(NamedTuple):
    """One card, as the driver has it.

    Attributes:
        minor: the N of /dev/nvidiaN, by which other systems number cards.
        pci: 00000000:3B:00.0.
        numa: None where nobody says.
        links: by the minor of another card, how well the two are connected: the more the better.
        is_mig: it is cut into instances, which are not ours to share.
        trouble: why the driver itself cannot use it; empty for a card in order.
    """

    minor: int
    uuid: str
    model: str
    memory_mib: int
    pci: str = ""
    numa: int | None = None
    links: tuple[tuple[int, int], ...] = ()
    is_mig: bool = False
    trouble: str = ""


class Process(NamedTuple):
    """One that computes on a card, by its number on the machine; the share of the card's cores is 0 to 100."""

    pid: int
    memory_mib: int
    cores_pct: int


class Load(NamedTuple):
    """Of one card, now."""

    used_mib: int
    cores_pct: int
    processes: tuple[Process, ...]


class Incident(NamedTuple):
    """Something the driver reports by itself; a critical error has its Xid, `uuid` is empty where it names no card."""

    uuid: str
    xid: int


class Gpus(Protocol):
    """Calls may block for milliseconds, `wait` for as long as it is told; all raise GpusError.

    Attributes:
        is_made_up: no card stands behind it.
    """

    is_made_up: bool

    def read(self) -> tuple[Gpu, ...]:
        """All cards as they are now. After the driver was reloaded it is opened anew."""

    def load(self, uuid: str) -> Load:
        """What runs on a card."""

    def wait(self, timeout_s: float) -> tuple[Incident, ...]:
        """What happened meanwhile."""

    def close(self) -> None:
        """Lets the driver go."""
