"""Rates how well cards are connected with each other, like NVIDIA's own plugin rates a pair.

Each step nearer on PCI is worth 10, each NVLink 100.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

import pynvml  # type: ignore[import-untyped]

from .driver import answer_or

_BY_ANCESTOR: Final = {
    pynvml.NVML_TOPOLOGY_SYSTEM: 10,
    pynvml.NVML_TOPOLOGY_NODE: 20,
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: 30,
    pynvml.NVML_TOPOLOGY_MULTIPLE: 40,
    pynvml.NVML_TOPOLOGY_SINGLE: 50,
    pynvml.NVML_TOPOLOGY_INTERNAL: 60,
}
_NVLINK: Final = 100
_SWITCH: Final = "switch"


class LinkEnd(NamedTuple):
    """A card that links may lead to, as the driver and other cards know it."""

    minor: int
    pci: str
    handle: Any


def links(cards: Sequence[LinkEnd]) -> dict[int, tuple[tuple[int, int], ...]]:
    """Maps each minor to the minors of the other cards, each with the strength."""
    nvlinks = {card.minor: Counter(_far_ends(card.handle)) for card in cards}
    found: dict[int, dict[int, int]] = {card.minor: {} for card in cards}
    for one, other in combinations(cards, 2):
        near = _BY_ANCESTOR.get(answer_or(-1, pynvml.nvmlDeviceGetTopologyCommonAncestor, one.handle, other.handle), 0)
        strength = near + _NVLINK * _between(nvlinks[one.minor], nvlinks[other.minor], other)
        if strength:
            found[one.minor][other.minor] = found[other.minor][one.minor] = strength
    return {minor: tuple(sorted(others.items())) for minor, others in found.items()}


def _between(mine: Counter[str], others: Counter[str], other: LinkEnd) -> int:
    """Returns the links through a switch: each pair of cards has as many as the card with fewer links."""
    return mine[other.pci] or min(mine[_SWITCH], others[_SWITCH])


def _far_ends(handle: Any) -> Iterator[str]:
    """Yields the PCI address at the other end of each working NVLink."""
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        if not answer_or(0, pynvml.nvmlDeviceGetNvLinkState, handle, link):
            continue
        kind = answer_or(None, pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
        if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            yield _SWITCH
        elif far := answer_or(None, pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link):
            yield far.busId.upper()
