"""The interface of the machine's cards: what the agent needs from a driver, and nothing more."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class GpusError(Exception):
    """The driver cannot be asked; the text says what, why and what to do."""


class NoMemoryLimitsError(GpusError):
    """The driver of a card limits no memory by cgroup: it is older, or the card is cut into MIG instances."""


class Gpu(NamedTuple):
    """One card in the driver.

    Attributes:
        minor: the N of /dev/nvidiaN, by which other systems number cards.
        pci: 00000000:3B:00.0.
        numa: None where it is unknown.
        links: by the minor of another card, how well the two are connected; higher is better.
        is_mig: it is cut into MIG instances, which are not shared.
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
    """A process on a card, by its pid on the machine; `cores_pct` is 0 to 100."""

    pid: int
    memory_mib: int
    cores_pct: int


class Load(NamedTuple):
    """The load of one card now."""

    used_mib: int
    cores_pct: int
    processes: tuple[Process, ...]


class Incident(NamedTuple):
    """An incident that the driver reports: the Xid of an error, and the card's uuid; empty where it names no card."""

    uuid: str
    xid: int


class Gpus(Protocol):
    """The driver. Calls may block for milliseconds, `wait` for its time-out; all raise GpusError.

    Attributes:
        is_made_up: whether the cards are fake.
    """

    is_made_up: bool

    def read(self) -> tuple[Gpu, ...]:
        """Reads all cards; opens the driver again where it was reloaded."""

    def load(self, uuid: str) -> Load:
        """Reads what runs on a card."""

    def limit_memory(self, uuid: str, cgroup: str, mib: int) -> None:
        """Limits the memory of a card that the processes of a cgroup, given by its folder, may have together.

        Raises NoMemoryLimitsError where the driver does not do that.
        """

    def wait(self, timeout_s: float) -> tuple[Incident, ...]:
        """Waits for incidents and returns them."""

    def close(self) -> None:
        """Closes the driver."""
