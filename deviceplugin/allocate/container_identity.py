"""Identifies the container that starts: kubelet passes device ids only, which are traced back to pod and container.

Invariant: the container that really starts is always among the named ones. There are several only where kubelet may
have passed on the ids of a plain init container, and then nothing on the node can tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from halfcard.placing import indistinguishable
from halfcard.placing.demand import ContainerStage
from halfcard.placing.indistinguishable import ResourceIds
from halfcard.pod.spec import INIT_CONTAINERS, Pod, places
from halfcard.problems import printable
from halfcard.quantity import InvalidQuantity, Quantity

from ..kubelet.messages import ListedDevices, RefusedError

_IDS_CHARS: Final = 60


class StartingContainer(NamedTuple):
    """A container that kubelet is about to create.

    Attributes:
        ids: of this resource, which it holds.
        listed: the container that holds exactly these ids; empty where they can only be a plain init container's.
        uid: the pod's, where it is known.
    """

    namespace: str
    pod: str
    resource: str
    ids: frozenset[str]
    listed: str = ""
    uid: str = ""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.pod}"


class AllocatedIds(NamedTuple):
    """How many ids of one resource a container was given."""

    container: str
    stage: ContainerStage
    amount: int


def starting(held: Iterable[ListedDevices], resource: str, ids: frozenset[str]) -> tuple[StartingContainer, ...]:
    """The pods that hold these ids, some of them perhaps no longer; none where none is listed.

    An init container may hold more than the containers after it, and then only those are listed. They are several
    where kubelet has given an id away twice, as it does up to 1.36 where it is asked who holds what while it gives.
    """
    found: dict[tuple[str, str], StartingContainer] = {}
    for each in held:
        if each.resource == resource and not ids.isdisjoint(each.ids):
            listed = each.container if each.ids == ids else ""
            before = found.get((each.namespace, each.pod))
            if before is None or listed:
                found[each.namespace, each.pod] = StartingContainer(each.namespace, each.pod, resource, ids, listed)
    return tuple(found.values())


def nobody_knows(found: Sequence[StartingContainer], resource: str, ids: frozenset[str]) -> RefusedError:
    """The error for ids that several pods hold, with no other way left to tell them apart."""
    if not found:
        return RefusedError(f"kubelet does not say which pod holds {named(resource, ids)}; it tries again")
    both = " and ".join(sorted(each.title for each in found)[:2])
    return RefusedError(f"kubelet gave {named(resource, ids)} to both {both}; delete the one that does not run yet")


def named(resource: str, ids: Iterable[str]) -> str:
    """For sentences."""
    found = sorted(ids)
    return f"{len(found)} of {resource} ({printable(', '.join(found), _IDS_CHARS)})"


def asks_of(pod: Pod, resource: str) -> tuple[AllocatedIds, ...]:
    """Returns the requests in the order in which kubelet allocates: init containers, then the others."""
    in_order = sorted(places(pod), key=lambda place: place.field != INIT_CONTAINERS)
    found = [
        AllocatedIds(place.container.name, _stage(place.field, sidecar=place.container.is_sidecar), 0)
        for place in in_order
    ]
    counts = [_count(place.container.limits.get(resource, 0)) for place in in_order]
    return tuple(ask._replace(amount=count) for ask, count in zip(found, counts, strict=True) if count)


def _stage(field: str, *, sidecar: bool) -> ContainerStage:
    if field != INIT_CONTAINERS:
        return ContainerStage.APP
    return ContainerStage.SIDECAR if sidecar else ContainerStage.INIT


def _count(amount: object) -> int:
    try:
        return Quantity.parse(str(amount)).as_int() or 0
    except InvalidQuantity:
        return 0  # kubelet would have refused the pod


def candidates(asks: Sequence[AllocatedIds], listed: str, count: int) -> tuple[str, ...]:
    """The containers that may hold exactly these ids, of which there are `count`."""
    where = {ask.container: at for at, ask in enumerate(asks)}
    if listed and listed not in where:
        return (listed,)
    given = [ResourceIds(ask.stage, ask.amount) for ask in asks]
    return tuple(asks[at].container for at in indistinguishable.candidates(given, where.get(listed), count))
