"""Finds the containers of a pod that the node agent cannot tell apart, and that must therefore have the same cards.

kubelet passes device ids to an agent, and no container. It pools the ids of plain init containers: each container takes
from the pool first, whichever ids come, and containers that keep running keep what they took. It does not list the ids
of plain init containers. Invariant: the container that starts is among the `candidates`, and each of them may be it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..claims import ContainerStage, Need


class ResourceIds(NamedTuple):
    """How many ids of one resource kubelet allocated to a container."""

    stage: ContainerStage
    amount: int


class IdHolder(NamedTuple):
    """A container with ids of one resource, by the number of its need."""

    number: int
    ids: ResourceIds


def id_holders(needs: Sequence[Need], resource: str) -> list[IdHolder]:
    """Returns the containers with ids of this resource, in the order in which kubelet allocates."""
    in_order = sorted(enumerate(needs), key=lambda item: (item[1].stage is ContainerStage.APP, item[1].order))
    amounts = [(number, need.stage, dict(need.ids).get(resource)) for number, need in in_order]
    return [IdHolder(number, ResourceIds(stage, amount)) for number, stage, amount in amounts if amount]


def candidates(given: Sequence[ResourceIds], listed: int | None, amount: int) -> tuple[int, ...]:
    """Returns the containers, in kubelet's order, that may have exactly the ids of the `listed` one."""
    alike = [at for at, each in enumerate(given) if each == (ContainerStage.INIT, amount)]
    if listed is None:
        return tuple([at for at in alike if may_go_unlisted(given, at)])
    return (*[at for at in alike if at < listed and may_be_handed_on(given, at, listed)], listed)


def may_be_handed_on(given: Sequence[ResourceIds], first: int, last: int) -> bool:
    """Returns whether a later container with the same amount may get exactly the ids of a plain init container."""
    count, others = given[first].amount, _others_in_pool(given, first)
    for stage, amount in given[first + 1 : last]:
        if stage is ContainerStage.INIT:
            others = max(others, amount - count)
        elif amount > others:
            return False  # it took some of them, whatever it chose
        else:
            others -= amount
    return True


def may_go_unlisted(given: Sequence[ResourceIds], first: int) -> bool:
    """Returns whether it is possible that no container that keeps running has exactly a plain init container's ids."""
    count, others = given[first].amount, _others_in_pool(given, first)
    for stage, amount in given[first + 1 :]:
        if stage is ContainerStage.INIT:
            others = max(others, amount - count)
        elif amount != count or (others and count > 1):
            return True  # it may have taken some of them
        elif not others:
            return False  # it took exactly these
        else:
            others -= 1
    return True


def _others_in_pool(given: Sequence[ResourceIds], first: int) -> int:
    """Counts the ids besides its own that a plain init container can leave in the pool."""
    pool = 0
    for stage, amount in given[: first + 1]:
        pool = max(pool, amount) if stage is ContainerStage.INIT else pool - min(pool, amount)
    return pool - given[first].amount


def same_cards_as(needs: tuple[Need, ...], number: int) -> int | None:
    """Returns the first need before this one that must have the same cards; None where there is none."""
    if needs[-1].stage is not ContainerStage.INIT:  # they come last, and nearly no pod has one
        return None
    first = _firsts(needs)[number]
    return first if first < number else None


@lru_cache(maxsize=1024)
def _firsts(needs: tuple[Need, ...]) -> tuple[int, ...]:
    """Returns for each need the first of those that have the same cards."""
    firsts = list(range(len(needs)))
    for group in _groups(needs):
        tied = {firsts[number] for number in group}
        firsts = [min(tied) if first in tied else first for first in firsts]
    return tuple(firsts)


def _groups(needs: tuple[Need, ...]) -> Iterator[list[int]]:
    """Yields groups of needs that the agent cannot tell apart, resource by resource."""
    for resource in {resource for need in needs for resource, _ in need.ids}:
        holders = id_holders(needs, resource)
        given = [each.ids for each in holders]
        for listed, amount in _seen(given):
            yield [holders[at].number for at in candidates(given, listed, amount)]


def _seen(given: Sequence[ResourceIds]) -> Iterator[tuple[int | None, int]]:
    """Yields all that the agent may see: ids listed for a container, or this number of ids listed for none."""
    for at, (stage, amount) in enumerate(given):
        yield (None if stage is ContainerStage.INIT else at), amount
