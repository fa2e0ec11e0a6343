"""Computes what one pod needs of cards, container by container and without names: pods with equal needs are equal."""

from __future__ import annotations

from typing import NamedTuple

from ..claims import ContainerStage, Need
from ..pod.card_preferences import NOTHING_WANTED, CardPreferences
from ..pod.requests import RequestingContainer
from ..pod.spec import INIT_CONTAINERS


class Demand(NamedTuple):
    """What one pod needs of a node.

    Attributes:
        needs: app containers, then sidecars, then init containers, each in the order of the manifest.
        wanted: the card preferences of its owner.
        cpu_milli: what the pod requests of the node's CPU; `memory_mib` likewise of its memory.
    """

    needs: tuple[Need, ...]
    wanted: CardPreferences = NOTHING_WANTED
    cpu_milli: int = 0
    memory_mib: int = 0


def needs_of(asked: tuple[RequestingContainer, ...]) -> tuple[tuple[str, ...], tuple[Need, ...]]:
    """Returns the names of the containers with claims, and their needs, in the same order."""
    found = [
        (each.place.container.name, Need(_stage(each), each.place.number, claim, _ids(each)))
        for each in asked
        if (claim := each.claim) is not None
    ]
    found.sort(key=lambda item: item[1].stage is ContainerStage.INIT)  # stable: the manifest's order within
    return tuple(name for name, _ in found), tuple(need for _, need in found)


def _ids(each: RequestingContainer) -> tuple[tuple[str, int], ...]:
    without = each.request.dialect.without_ids if each.request.dialect is not None else frozenset()
    asks = (*each.request.asks, *each.request.implied)
    return tuple(sorted([(ask.resource, ask.amount) for ask in asks if ask.amount and ask.resource not in without]))


def _stage(each: RequestingContainer) -> ContainerStage:
    if each.place.field != INIT_CONTAINERS:
        return ContainerStage.APP
    return ContainerStage.SIDECAR if each.place.container.is_sidecar else ContainerStage.INIT
