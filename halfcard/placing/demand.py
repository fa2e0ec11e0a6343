"""What one pod needs of cards, container by container, without names: pods that need the same are equal."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from ..asks import Asked
from ..claims import Claim
from ..pods import INIT_CONTAINERS
from ..wanted import NOTHING_WANTED, Wanted


class Stage(StrEnum):
    APP = "app"
    SIDECAR = "sidecar"
    INIT = "init"


class Need(NamedTuple):
    """One container's.

    Attributes:
        order: its place among init containers, which start before all others, or among the others.
        ids: of how many device ids kubelet gives it, by resource.
    """

    stage: Stage
    order: int
    claim: Claim
    ids: tuple[tuple[str, int], ...] = ()


class Demand(NamedTuple):
    """Of one pod.

    Attributes:
        needs: app containers, then sidecars, then init containers, each in the order of the manifest.
        wanted: which cards its owner would have, and how chosen.
        cpu_milli: what it asks of the node besides, as is `memory_mib`.
    """

    needs: tuple[Need, ...]
    wanted: Wanted = NOTHING_WANTED
    cpu_milli: int = 0
    memory_mib: int = 0


def needs_of(asked: tuple[Asked, ...]) -> tuple[tuple[str, ...], tuple[Need, ...]]:
    """The names of the containers with claims, and their needs, in the same order."""
    found = [
        (each.place.container.name, Need(_stage(each), each.place.number, claim, _ids(each)))
        for each, claim in _claiming(asked)
    ]
    found.sort(key=lambda item: item[1].stage is Stage.INIT)  # stable: the manifest's order within
    return tuple(name for name, _ in found), tuple(need for _, need in found)


def _claiming(asked: tuple[Asked, ...]) -> Iterator[tuple[Asked, Claim]]:
    for each in asked:
        if each.claim is not None:
            yield each, each.claim


def _ids(each: Asked) -> tuple[tuple[str, int], ...]:
    without = each.wish.dialect.without_ids if each.wish.dialect is not None else frozenset()
    asks = (*each.wish.asks, *each.wish.implied)
    return tuple(sorted([(ask.resource, ask.amount) for ask in asks if ask.amount and ask.resource not in without]))


def _stage(each: Asked) -> Stage:
    if each.place.field != INIT_CONTAINERS:
        return Stage.APP
    return Stage.SIDECAR if each.place.container.is_sidecar else Stage.INIT
