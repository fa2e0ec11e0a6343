"""What `kubectl describe node` shows people of a node's resources, as numbers."""

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


def described(gpus: GpuCluster) -> str:
    done = gpus.cluster.kubectl("describe", "node", gpus.node.name)
    assert done.code == 0, done.stderr
    return done.stdout


def numbers(text: str, section: str) -> Mapping[str, int]:
    """By resource; of what is allocated the requests."""
    lines = next(match["lines"] for match in _SECTION.finditer(text) if match["title"] == section)
    amounts = {match["resource"]: Quantity.parse(match["amount"]) for match in _ROW.finditer(lines) if "/" in match[1]}
    return {resource: amount.as_int() or 0 for resource, amount in amounts.items()}


class Listing:
    """A few resources of the node, in an order that tests give amounts in."""

    def __init__(self, gpus: GpuCluster, *resources: str) -> None:
        self._gpus = gpus
        self._resources = resources

    def shows(self, *totals: int, used: Sequence[int] | None = None) -> None:
        """Waits for capacity, allocatable and, where they are given, requests to be these."""
        wanted = (totals, totals) if used is None else (totals, totals, tuple(used))
        wait_until(
            lambda: self._read()[: len(wanted)] == wanted,
            what=f"{', '.join(self._resources)} to be {wanted}",
            details=lambda: f"there is {self._read()}\n{described(self._gpus)}",
        )

    def _read(self) -> tuple[tuple[int, ...], ...]:
        text = described(self._gpus)
        sections = [numbers(text, section) for section in (CAPACITY, ALLOCATABLE, ALLOCATED)]
        return tuple(tuple(found.get(resource, 0) for resource in self._resources) for found in sections)
