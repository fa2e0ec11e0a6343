"""The interface of the machine's cards: what the agent needs from a driver, and nothing more."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class GpusError(Exception):
    """The driver cannot be asked; the text says what, why and what to do."""


class Gpu(NamedTuple):
    """One card in the driver.

    Attributes:
        minor: the N of /dev/nvidiaN, by which other systems number cards.
        pci: 00000000:3B:00.0.
        numa: None where it is unknown.
        links: by the minor of another card, how well the two are connected; higher is better.
        is_mig: it is cut into instances, which are not ours to share.
        trouble: why the driver itself cannot use it; empty for a healthy card.
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
    """The load of one card now."""

    used_mib: int
    cores_pct: int
    processes: tuple[Process, ...]


class Incident(NamedTuple):
    """Something the driver reports by itself; a critical error has its Xid, `uuid` is empty where it names no card."""

    uuid: str
    xid: int


class Gpus(Protocol):
    """The driver. Calls may block for milliseconds, `wait` for its time-out; all raise GpusError.

    Attributes:
        is_made_up: whether the cards are fake.
    """

    is_made_up: bool

    def read(self) -> tuple[Gpu, ...]:
        """Reads all cards now. After a reload of the driver it is opened again."""

    def load(self, uuid: str) -> Load:
        """Reads what runs on a card."""

    def wait(self, timeout_s: float) -> tuple[Incident, ...]:
        """Waits for incidents and returns them."""

    def close(self) -> None:
        """Lets the driver go."""
