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
_MODPROBE: Final = "nvidia-modprobe"
_CREATING: Final = dict(zip(names.CUDA_DEVICE_FILES, (f"{_MODPROBE} -c 255", f"{_MODPROBE} -u -c 0"), strict=True))


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
        kernel_devices: the kernel's list of drivers, which is the same in every container.
    """

    devices: Path
    descriptions: Callable[[], Iterable[Description]]
    are_made_up: bool = False
    kernel_devices: Path = Path("/proc/devices")

    def __call__(self, cards: Sequence[Card]) -> CardEdits:
        described = edits_of(self.descriptions(), cards)
        if described is not None:
            _check_described(described.edits)
            return described
        if self.are_made_up:
            return CardEdits(VERSION, {"deviceNodes": []})
        minors = [card.index for card in cards]
        self._check_present(minors)
        return CardEdits(VERSION, own_edits(self.devices, minors))

    def _check_present(self, minors: Iterable[int]) -> None:
        creating = {f"{names.DEVICE_FILES}{minor}": f"{_MODPROBE} -c {minor}" for minor in minors} | _CREATING
        for inside, command in creating.items():
            file = self.devices / Path(inside).name
            if not file.exists() and not self._is_loaded(file.name):
                raise RefusedError(
                    f"the driver's file {file} does not exist, and CUDA needs it; load the driver, or run {command}; "
                    "kubelet tries again"
                )

    def _is_loaded(self, driver: str) -> bool:
        """Returns whether the kernel has this driver.

        The agent's own container may lack nvidia-uvm where the node has it.
        """
        try:
            return any(line.split()[1:] == [driver] for line in self.kernel_devices.read_text().splitlines())
        except OSError:
            return False


def _check_described(edits: Edits) -> None:
    """Checks that cards with device files have those that CUDA needs, too; under WSL a card has none."""
    paths = _paths(edits)
    missing = [each for each in names.CUDA_DEVICE_FILES if each not in paths]
    if missing and any(map(_is_card_file, paths)):
        raise RefusedError(
            f"NVIDIA's CDI description does not name {missing[0]}, and CUDA needs it: it did not exist when that was "
            f"written; run {_CREATING[missing[0]]}, then {names.DESCRIBE_CARDS}; kubelet tries again"
        )


def own_edits(devices: Path, minors: Iterable[int], exists: Callable[[Path], bool] = Path.exists) -> Edits:
    """Returns the device files that CUDA needs, without which the runtime starts no container, and the others that
    exist; `devices` is their folder on the host.
    """
    needed = [*(f"{names.DEVICE_FILES}{minor}" for minor in minors), *names.CUDA_DEVICE_FILES]
    further = [each for each in names.SHARED_DEVICE_FILES if each not in needed]
    found = [(inside, devices / Path(inside).name) for inside in (*needed, *further)]
    return {"deviceNodes": [_node(inside, host) for inside, host in found if inside in needed or exists(host)]}


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
    return set(filter(_is_card_file, _paths(device.edits)))


def _paths(edits: Edits) -> list[str]:
    return [str(node.get("path", "")) for node in edits.get("deviceNodes") or () if isinstance(node, Mapping)]


def _is_card_file(path: str) -> bool:
    return path.removeprefix(names.DEVICE_FILES).isdecimal()


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
