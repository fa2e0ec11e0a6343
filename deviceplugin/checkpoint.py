"""Who holds which ids, also those that kubelet's socket does not list.

Those are plain init containers of pods that ask for no more later, and all pods of which a kubelet that has just begun
has not heard again. Kubelet's own checkpoint names them all, each with the pod's uid, and is written before a container
starts. It is nobody's interface: where it cannot be read, the socket alone has to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Final

import msgspec

_FILE: Final = "kubelet_internal_checkpoint"


class _Entry(msgspec.Struct, rename="pascal"):
    resource_name: str
    pod_uid: str = msgspec.field(name="PodUID")
    device_ids: dict[str, list[str]] | list[str] | None = msgspec.field(name="DeviceIDs")
    """By NUMA node; older kubelets list them."""


class _Data(msgspec.Struct, rename="pascal"):
    pod_device_entries: list[_Entry] | None = None


class _Checkpoint(msgspec.Struct, rename="pascal"):
    data: _Data


_CHECKPOINT: Final = msgspec.json.Decoder(_Checkpoint)


def holders(content: bytes, resource: str, ids: frozenset[str]) -> frozenset[str]:
    """The pods, by uid, of which a container holds exactly these ids: several where kubelet gave them away twice."""
    entries = _entries(content)
    return frozenset(each.pod_uid for each in entries if each.resource_name == resource and _ids(each) == ids)


def held(content: bytes, uids: Container[str]) -> Mapping[str, set[str]]:
    """The ids that these pods hold, by resource."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in _entries(content):
        if each.pod_uid in uids:
            found[each.resource_name] |= _ids(each)
    return found


def _entries(content: bytes) -> list[_Entry]:
    try:
        return _CHECKPOINT.decode(content).data.pod_device_entries or []
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []


def _ids(entry: _Entry) -> frozenset[str]:
    lists = entry.device_ids.values() if isinstance(entry.device_ids, dict) else [entry.device_ids or []]
    return frozenset(device for each in lists for device in each)


class Checkpoint:
    """In kubelet's folder of device plugins."""

    def __init__(self, plugins: Path) -> None:
        self._path = plugins / _FILE

    def holders(self, resource: str, ids: frozenset[str]) -> frozenset[str]:
        return holders(self._content(), resource, ids)

    def held(self, uids: Container[str]) -> Mapping[str, set[str]]:
        return held(self._content(), uids)

    def _content(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError:
            return b""
