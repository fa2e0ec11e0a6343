"""Identifies the container that starts: kubelet passes device ids only, which are traced back to pod and container.

Invariant: the container that really starts is always among the named ones. There are several only where kubelet may
have passed on the ids of a plain init container, and then nothing on the node can tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from halfcard.claims import ContainerStage
from halfcard.placing import indistinguishable
from halfcard.placing.indistinguishable import id_holders
from halfcard.placing.pod_facts import PodFacts
from halfcard.problems import printable

from ..kubelet.messages import ListedDevices, RefusedError

_IDS_CHARS: Final = 60


class StartingContainer(NamedTuple):
    """A container that kubelet is about to create.

    Attributes:
        ids: the ids of this resource that it holds.
        listed: the container that holds exactly these ids; empty where they can only be a plain init container's.
        uid: the uid under which kubelet runs the pod; empty where it is unknown.
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


def pods_holding(held: Iterable[ListedDevices], resource: str, ids: frozenset[str]) -> tuple[StartingContainer, ...]:
    """Returns the pods that hold some of these ids; pods that have ended may be among them.

    An init container may hold more ids than the containers after it, and only those are listed. There are several pods
    where kubelet has allocated an id twice, as it does up to 1.36 where pod-resources is called during an allocation.
    """
    found: dict[tuple[str, str], StartingContainer] = {}
    for each in held:
        if each.resource == resource and not ids.isdisjoint(each.ids):
            listed = each.container if each.ids == ids else ""
            before = found.get((each.namespace, each.pod))
            if before is None or listed:
                found[each.namespace, each.pod] = StartingContainer(each.namespace, each.pod, resource, ids, listed)
    return tuple(found.values())


def identity_error(found: Sequence[StartingContainer], resource: str, ids: frozenset[str]) -> RefusedError:
    """Returns the error for ids that no pod holds, or several that look alike."""
    if not found:
        return RefusedError(f"kubelet does not report which pod holds {ids_text(resource, ids)}; it tries again")
    both = " and ".join(sorted(each.title for each in found)[:2])
    return RefusedError(
        f"kubelet allocated {ids_text(resource, ids)} to both {both}; delete the one that does not run yet"
    )


def ids_text(resource: str, ids: Iterable[str]) -> str:
    """Describes ids in a message."""
    found = sorted(ids)
    return f"{len(found)} of {resource} ({printable(', '.join(found), _IDS_CHARS)})"


def candidates(pod: PodFacts, container: StartingContainer) -> tuple[str, ...]:
    """Returns the containers of the pod that may hold exactly these ids; only plain init containers pass ids on."""
    needs = pod.demand.needs
    if container.listed and all(need.stage is not ContainerStage.INIT for need in needs):
        return (container.listed,)
    holders = id_holders(needs, container.resource)
    where = {pod.containers[holder.number]: at for at, holder in enumerate(holders)}
    if container.listed and container.listed not in where:
        return (container.listed,)
    found = indistinguishable.candidates(
        [each.ids for each in holders], where.get(container.listed), len(container.ids)
    )
    return tuple([pod.containers[holders[at].number] for at in found])
