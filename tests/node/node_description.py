"""Reads the resources of a node from the output of `kubectl describe node`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from devcluster.waiting import wait_until
from halfcard.quantity import Quantity

from .gpu_cluster import GpuCluster

_SECTION: Final = re.compile(r"^(?P<title>[A-Z][A-Za-z ]*):(?P<lines>(?:\n .*)*)", re.MULTILINE)
_ROW: Final = re.compile(r"^ +(?P<resource>[a-z0-9./-]+):? +(?P<amount>[0-9a-zA-Z]+)", re.MULTILINE)

CAPACITY: Final = "Capacity"
ALLOCATABLE: Final = "Allocatable"
ALLOCATED: Final = "Allocated resources"


def describe_node(gpus: GpuCluster) -> str:
    done = gpus.cluster.kubectl("describe", "node", gpus.node.name)
    assert done.code == 0, done.stderr
    return done.stdout


def amounts_in(text: str, section: str) -> Mapping[str, int]:
    """The amounts of one section by resource; for allocated resources these are the requests."""
    lines = next(match["lines"] for match in _SECTION.finditer(text) if match["title"] == section)
    amounts = {match["resource"]: Quantity.parse(match["amount"]) for match in _ROW.finditer(lines) if "/" in match[1]}
    return {resource: amount.as_int() or 0 for resource, amount in amounts.items()}


class NodeResources:
    """Some resources of the node; tests give their amounts in the same order."""

    def __init__(self, gpus: GpuCluster, *resources: str) -> None:
        self._gpus = gpus
        self._resources = resources

    def wait_for(self, *totals: int, used: Sequence[int] | None = None) -> None:
        """Waits until capacity and allocatable are `totals`, and the requests are `used` where it is given."""
        wanted = (totals, totals) if used is None else (totals, totals, tuple(used))
        wait_until(
            lambda: self._read()[: len(wanted)] == wanted,
            what=f"{', '.join(self._resources)} to be {wanted}",
            details=lambda: f"they are {self._read()}\n{describe_node(self._gpus)}",
        )

    def _read(self) -> tuple[tuple[int, ...], ...]:
        text = describe_node(self._gpus)
        sections = [amounts_in(text, section) for section in (CAPACITY, ALLOCATABLE, ALLOCATED)]
        return tuple(tuple(found.get(resource, 0) for resource in self._resources) for found in sections)
