"""Reads from kubelet's own checkpoint which container holds which ids.

It names every container with the pod's uid, and is written before a container starts. It is not a public interface: an
unreadable one is reported, and other sources are used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from .messages import CheckpointEntry

_FILE: Final = "kubelet_internal_checkpoint"


class _Entry(msgspec.Struct, rename="pascal"):
    container_name: str
    resource_name: str
    pod_uid: str = msgspec.field(name="PodUID")
    device_ids: dict[str, list[str]] | list[str] | None = msgspec.field(name="DeviceIDs")
    """The ids by NUMA node; a list in older kubelets."""


class _Data(msgspec.Struct, rename="pascal"):
    pod_device_entries: list[_Entry] | None = None


class _Checkpoint(msgspec.Struct, rename="pascal"):
    data: _Data


_CHECKPOINT: Final = msgspec.json.Decoder(_Checkpoint)


def read(content: bytes) -> tuple[CheckpointEntry, ...] | None:
    """Decodes a checkpoint; None for an unknown format."""
    try:
        entries = _CHECKPOINT.decode(content).data.pod_device_entries or []
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return tuple(
        [CheckpointEntry(each.pod_uid, each.container_name, each.resource_name, _ids(each)) for each in entries]
    )


def _ids(entry: _Entry) -> frozenset[str]:
    lists = entry.device_ids.values() if isinstance(entry.device_ids, dict) else [entry.device_ids or []]
    return frozenset(device for each in lists for device in each)


class Checkpoint:
    """The checkpoint in kubelet's folder of device plugins; read again when it has changed."""

    def __init__(self, plugins: Path) -> None:
        self._path = plugins / _FILE
        self._version: tuple[int, int, int] | None = None
        self._entries: tuple[CheckpointEntry, ...] | None = None

    def entries(self) -> tuple[CheckpointEntry, ...] | None:
        """Returns the entries; None where the file is missing or unreadable."""
        try:
            found = self._path.stat()
            version = found.st_ino, found.st_mtime_ns, found.st_size
            if version != self._version:
                self._version, self._entries = version, read(self._path.read_bytes())
        except OSError:
            return None
        return self._entries
