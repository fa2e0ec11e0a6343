"""What one pod needs of cards, container by container, without names: pods that need the same are equal."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from ..asks import Asked
from ..claims import Claim, Part
from ..pods import INIT_CONTAINERS
from ..wanted import NOTHING_WANTED, Wanted


class Stage(StrEnum):
    APP = "app"
    SIDECAR = "sidecar"
    INIT = "init"


class Need(NamedTuple):
    """One container's; its place in the pod is `order` among init containers, and later for all others."""

    stage: Stage
    order: int
    claim: Claim


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
        (each.place.container.name, Need(_stage(each), each.place.number, claim)) for each, claim in _claiming(asked)
    ]
    found.sort(key=lambda item: item[1].stage is Stage.INIT)  # stable: the manifest's order within
    return tuple(name for name, _ in found), tuple(need for _, need in found)


def _claiming(asked: tuple[Asked, ...]) -> Iterator[tuple[Asked, Claim]]:
    for each in asked:
        if each.claim is not None:
            yield each, each.claim


def _stage(each: Asked) -> Stage:
    if each.place.field != INIT_CONTAINERS:
        return Stage.APP
    return Stage.SIDECAR if each.place.container.is_sidecar else Stage.INIT


def tied_to(needs: tuple[Need, ...], number: int) -> list[int]:
    """The needs before this one whose cards it has to have.

    Kubelet hands the device ids of a plain init container on to the next container that asks for as many of a
    resource: the node could not tell the two apart. Init containers that ask for as many cannot be told apart either.
    """
    need = needs[number]
    if need.stage is not Stage.INIT:
        return []
    found = {at for at in range(number) if needs[at].stage is Stage.INIT and _counts(need) & _counts(needs[at])}
    later = [at for at in range(number) if needs[at].stage is Stage.SIDECAR and needs[at].order > need.order]
    later += [at for at in range(number) if needs[at].stage is Stage.APP]
    for count in _counts(need):
        found.update([at for at in later if count in _counts(needs[at])][:1])
    return sorted(found)


def _counts(need: Need) -> set[tuple[str, str, int | None]]:
    """How many it asks for of each resource."""
    claim = need.claim
    said = (
        (f"{claim.part}s", claim.cards if claim.distinct or claim.part is not Part.AMOUNT else None),
        ("cores", claim.cores_pct),
        ("MiB", claim.memory_mib),
        ("% of memory", claim.memory_pct if claim.part is Part.AMOUNT else None),
    )
    return {(claim.dialect, what, count) for what, count in said if count is not None}
