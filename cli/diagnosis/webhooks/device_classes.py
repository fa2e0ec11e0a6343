"""Checks whether device classes that bring GPUs are in the setting `gpu_device_classes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.dra.driver_nodes import DeviceClass
from halfcard.problems import printable

from ..finding import WARNING, Check, FoundFault
from ..snapshot import Snapshot

_NAME_CHARS: Final = 253
_FIX: Final = "if its devices are GPUs, add it to the setting `gpu_device_classes`; if not, nothing"


def _unlisted(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Judges a class by its resource and its driver; one that names no driver may select any device."""
    listed = {*snapshot.settings.gpu_device_classes}
    drivers = _gpu_drivers(snapshot.device_classes, listed)
    for each in snapshot.device_classes:
        name = printable(each.metadata.name, _NAME_CHARS)
        if each.metadata.name not in listed and (got := _brings_gpus(each, drivers)):
            yield FoundFault(f"device class {name}", got, _FIX, f"kubectl get deviceclass {name} -o yaml")


def _gpu_drivers(classes: tuple[DeviceClass, ...], listed: set[str]) -> frozenset[str]:
    of_listed = [each.drivers for each in classes if each.metadata.name in listed]
    return frozenset({names.GPU_DEVICE_CLASSES[0]}).union(*of_listed)


def _brings_gpus(each: DeviceClass, drivers: frozenset[str]) -> str:
    """Returns why the devices of a class are, or may be, GPUs; empty where they are not."""
    if each.spec.extended_resource_name == names.NVIDIA_GPU:
        return f"has {names.NVIDIA_GPU}, and claims of it are not refused"
    if known := sorted(each.drivers & drivers):
        return f"selects devices of {printable(known[0], _NAME_CHARS)}, and claims of it are not refused"
    return "" if each.drivers else "names no driver, so its devices may be GPUs, and claims of it are not refused"


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "device-class-unlisted",
        WARNING,
        "the setting `gpu_device_classes` has every device class that brings GPUs",
        f"Claims of other classes bring GPUs past every {names.GPU_QUOTA}. A class is judged by its"
        " `extendedResourceName` and by the driver that its selectors name.",
        _unlisted,
        unless=("settings-unusable",),
    ),
)
