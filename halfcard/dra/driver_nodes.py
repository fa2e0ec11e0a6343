"""Finds the nodes whose `nvidia.com/gpu` a driver of Dynamic Resource Allocation gives out: a DeviceClass has that
resource and selects the driver, and the driver publishes ResourceSlices of the node.

A class that does not name its driver as `device.driver == "NAME"` selects none: its nodes stay without cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from .. import names

_DRIVER: Final = re.compile(r"""\bdevice\.driver\s*==\s*(["'])([^"'\\]{1,253})\1""")


class _Record(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class _Metadata(_Record, frozen=True):
    name: str


class _Cel(_Record, frozen=True):
    expression: str = ""


class _Selector(_Record, frozen=True):
    cel: _Cel | None = None


class _ClassSpec(_Record, frozen=True):
    selectors: list[_Selector] | None = None
    extended_resource_name: str | None = None


class DeviceClass(_Record, frozen=True):
    metadata: _Metadata
    spec: _ClassSpec = _ClassSpec()

    @property
    def drivers(self) -> frozenset[str]:
        """The drivers that its selectors name; empty where they say it in another way."""
        expressions = [each.cel.expression for each in self.spec.selectors or () if each.cel is not None]
        return frozenset(found[2] for each in expressions for found in _DRIVER.finditer(each))


class _SliceSpec(_Record, frozen=True):
    driver: str = ""
    node_name: str | None = None


class ResourceSlice(_Record, frozen=True):
    metadata: _Metadata
    spec: _SliceSpec = _SliceSpec()


Published = DeviceClass | ResourceSlice


class DriverNodes:
    """The classes and slices as last seen; slices that belong to no single node are skipped."""

    def __init__(self) -> None:
        self._seen: dict[tuple[type[Published], str], Published] = {}
        self._drivers: dict[str, str] | None = None
        self._nodes: frozenset[str] = frozenset()

    def driver(self, node: str) -> str:
        """Returns the driver that has `nvidia.com/gpu` on the node; empty for none."""
        return self._by_node().get(node, "")

    def nodes(self) -> frozenset[str]:
        """Returns the nodes with such a driver; the same object as before while they are the same."""
        found = self._by_node()
        if found.keys() != self._nodes:
            self._nodes = frozenset(found)
        return self._nodes

    def __bool__(self) -> bool:
        """Returns whether any node has such a driver."""
        return bool(self._by_node())

    def _by_node(self) -> Mapping[str, str]:
        if self._drivers is None:
            known = self._known_drivers()
            slices = [each.spec for each in self._seen.values() if isinstance(each, ResourceSlice)]
            self._drivers = {each.node_name: each.driver for each in slices if each.node_name and each.driver in known}
        return self._drivers

    def _known_drivers(self) -> frozenset[str]:
        offering = [each for each in self.classes() if each.spec.extended_resource_name == names.NVIDIA_GPU]
        return frozenset().union(*[each.drivers for each in offering])

    def classes(self) -> tuple[DeviceClass, ...]:
        return tuple([each for each in self._seen.values() if isinstance(each, DeviceClass)])

    def replace(self, kind: type[Published], found: Iterable[Published]) -> None:
        """Replaces all classes, or all slices."""
        others = {key: each for key, each in self._seen.items() if key[0] is not kind}
        self._seen, self._drivers = others | {(kind, each.metadata.name): each for each in found}, None

    def put(self, found: Published) -> None:
        self._seen[type(found), found.metadata.name] = found
        self._drivers = None

    def drop(self, found: Published) -> None:
        self._seen.pop((type(found), found.metadata.name), None)
        self._drivers = None
