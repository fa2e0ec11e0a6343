"""Collects what a container needs to reach its cards: from NVIDIA's own CDI description if one exists, else the device
files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from halfcard import names
from halfcard.cards import Card

from ..kubelet.messages import RefusedError
from .cdi import VERSION, CardEdits, Edits, merged

_SUFFIXES: Final = (".json", ".yaml")
_MOST_BYTES: Final = 16 * 2**20


class CdiDevice(msgspec.Struct, frozen=True):
    name: str
    edits: dict[str, Any] = msgspec.field(default={}, name="containerEdits")


class Description(msgspec.Struct, frozen=True):
    kind: str
    version: str = msgspec.field(default=VERSION, name="cdiVersion")
    devices: list[CdiDevice] = []
    edits: dict[str, Any] = msgspec.field(default={}, name="containerEdits")


@dataclass(frozen=True, slots=True)
class CardFiles:
    """The files of this node.

    Attributes:
        devices: the folder of device files.
        descriptions: returns NVIDIA's own CDI descriptions as they are now.
        are_made_up: the cards are fake and have no files.
    """

    devices: Path
    descriptions: Callable[[], Iterable[Description]]
    are_made_up: bool = False

    def __call__(self, cards: Sequence[Card]) -> CardEdits:
        described = edits_of(self.descriptions(), cards)
        if described is not None:
            return described
        for card in cards:
            file = self.devices / Path(f"{names.DEVICE_FILES}{card.index}").name
            if not self.are_made_up and not file.exists():
                raise RefusedError(
                    f"the driver's file {file} of card {card.index} does not exist; load the driver, or run "
                    f"nvidia-modprobe -c {card.index}; kubelet tries again"
                )
        return CardEdits(VERSION, own_edits(self.devices, [card.index for card in cards]))


def own_edits(devices: Path, minors: Iterable[int], exists: Callable[[Path], bool] = Path.exists) -> Edits:
    """Returns the device files of the driver that exist; `devices` is their folder on the host."""
    wanted = [*(f"{names.DEVICE_FILES}{minor}" for minor in minors), *names.SHARED_DEVICE_FILES]
    found = [(inside, devices / Path(inside).name) for inside in wanted]
    return {"deviceNodes": [_node(inside, host) for inside, host in found if exists(host)]}


def _node(inside: str, host: Path) -> dict[str, str]:
    return {"path": inside} if str(host) == inside else {"path": inside, "hostPath": str(host)}


# --- NVIDIA's own descriptions ----------------------------------------------------------------------------------------


def edits_of(descriptions: Iterable[Description], cards: Sequence[Card]) -> CardEdits | None:
    """Combines the edits of these cards; None where one of them is not described. The last description wins."""
    for each in reversed([each for each in descriptions if each.kind == names.NVIDIA_GPU]):
        devices = [_device(each.devices, card) for card in cards]
        found = [device.edits for device in devices if device is not None]
        if found and len(found) == len(cards):
            return CardEdits(max(VERSION, each.version, key=_numbers), merged([each.edits, *found]))
    return None


def _device(devices: Iterable[CdiDevice], card: Card) -> CdiDevice | None:
    """Finds a device by uuid, else the one with exactly this card's file, because their numbers are not the
    driver's.
    """
    by_name = {device.name: device for device in devices}
    if card.uuid and card.uuid in by_name:
        return by_name[card.uuid]
    file = f"{names.DEVICE_FILES}{card.index}"
    return next((device for device in by_name.values() if _card_files(device) == {file}), None)


def _card_files(device: CdiDevice) -> set[str]:
    paths = [str(node.get("path", "")) for node in device.edits.get("deviceNodes") or () if isinstance(node, Mapping)]
    return {path for path in paths if path.removeprefix(names.DEVICE_FILES).isdecimal()}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.lstrip("v").split(".") if part.isdecimal())


class NvidiaDescriptions:
    """Reads the descriptions; again when a file has changed: the toolkit writes them at each start of the driver."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._read: dict[Path, tuple[tuple[int, int], Description | None]] = {}

    def __call__(self) -> list[Description]:
        seen = {path: stamp for folder in self._folders for path, stamp in _files(folder)}
        self._read = {path: self._known(path, stamp) for path, stamp in seen.items()}
        return [found for _, found in self._read.values() if found is not None]

    def _known(self, path: Path, stamp: tuple[int, int]) -> tuple[tuple[int, int], Description | None]:
        known = self._read.get(path)
        return known if known is not None and known[0] == stamp else (stamp, _description(path))


def _files(folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Yields the files by name, without our own, of which there may be hundreds."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(_SUFFIXES) and not entry.name.startswith(names.OWN_DOMAIN):
            try:
                stat = entry.stat()
            except OSError:
                continue
            if stat.st_size <= _MOST_BYTES:
                yield Path(entry.path), (stat.st_mtime_ns, stat.st_size)


def _description(path: Path) -> Description | None:
    """Reads a description of another program; an unreadable one is left for the runtime to report."""
    try:
        content = path.read_bytes()
        return msgspec.convert(yaml.load(content, yaml.CSafeLoader), Description)
    except (OSError, ValueError, RecursionError, yaml.YAMLError, msgspec.MsgspecError):
        return None
