"""Explains which pods may go to the nodes of a driver of Dynamic Resource Allocation. Pure.

kube-scheduler allocates the devices there, before it calls the extender: it calls filter with the nodes where they are
free, and bind once they are reserved. Halfcard writes no record, and refuses all other claims with a reason.
"""

from __future__ import annotations

from typing import Final

from halfcard import names
from halfcard.placing.driver_demand import may_go_to_driver
from halfcard.placing.pod_facts import PodFacts

NOT_FOR_DRIVERS: Final = (
    "its cards are given out whole by a driver of Dynamic Resource Allocation,"
    f" to pods that request {names.NVIDIA_GPU} alone and name no card"
)


def explanation(facts: PodFacts, driver: str) -> str:
    """Returns what is known of a node of a driver: whether a card is free there, kube-scheduler alone knows."""
    if may_go_to_driver(facts.demand):
        return f"kube-scheduler allocates its cards by Dynamic Resource Allocation (driver {driver})"
    return NOT_FOR_DRIVERS
