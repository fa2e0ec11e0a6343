"""kubelet's calls as plain data: the devices it lists, the containers that hold them, and the answers it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Device(NamedTuple):
    """One device; an unhealthy one counts for the node's capacity and is allocated to no container."""

    id: str
    healthy: bool = True
    numa: int | None = None


class ListedDevices(NamedTuple):
    """All ids of one resource that one container holds."""

    namespace: str
    pod: str
    container: str
    resource: str
    ids: frozenset[str]


class CheckpointEntry(NamedTuple):
    """All ids of one resource that kubelet allocated to one container; its pod may have ended since."""

    uid: str
    container: str
    resource: str
    ids: frozenset[str]


class Granted(NamedTuple):
    """The answer to Allocate: what the runtime adds to a container.

    Attributes:
        cdi: full names of CDI devices.
        devices: the paths of device files, on the host and in the container.
        mounts: likewise; read-only for the container.
    """

    cdi: tuple[str, ...] = ()
    devices: tuple[tuple[str, str], ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    env: Mapping[str, str] = {}


class RefusedError(Exception):
    """A container may not start; the text is a sentence for the Events of its pod."""


class AllocationHandler(Protocol):
    """Decides about kubelet's calls; both methods raise RefusedError."""

    def allocate(self, resource: str, ids: Sequence[str]) -> Granted:
        """Answers for a container of which only the ids are known; kubelet admits no other pod meanwhile."""

    async def prestart(self, resource: str, ids: Sequence[str]) -> None:
        """Returns when the container may be created; kubelet waits for 30 seconds."""
