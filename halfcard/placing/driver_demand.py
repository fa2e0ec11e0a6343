"""Decides which demands a driver of Dynamic Resource Allocation may meet: whole cards, whichever they are."""

from __future__ import annotations

from ..claims import Need
from ..dialects.nvidia import Nvidia
from .demand import Demand


def may_go_to_driver(demand: Demand) -> bool:
    """Returns whether a pod requests whole cards only, by the resource that drivers have, and any of them."""
    return bool(demand.needs) and all(map(_is_of_driver, demand.needs)) and not demand.wanted.narrows


def _is_of_driver(need: Need) -> bool:
    return need.claim.exclusive and need.claim.dialect == Nvidia.name
