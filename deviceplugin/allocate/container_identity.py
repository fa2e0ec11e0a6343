"""Identifies the container that starts: kubelet passes device ids only, which are traced back to pod and container.

Invariant: the container that really starts is always among the named ones. There are several only where kubelet may
have passed on the ids of a plain init container, and then nothing on the node can tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from halfcard.placing import indistinguishable
from halfcard.placing.indistinguishable import id_holders
from halfcard.placing.pod_facts import PodFacts
from halfcard.problems import printable

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


def ambiguous(found: Sequence[StartingContainer], resource: str, ids: frozenset[str]) -> RefusedError:
    """Returns the error for ids that no pod holds, or several that cannot be told apart."""
    if not found:
        return RefusedError(f"kubelet does not say which pod holds {named(resource, ids)}; it tries again")
    both = " and ".join(sorted(each.title for each in found)[:2])
    return RefusedError(f"kubelet gave {named(resource, ids)} to both {both}; delete the one that does not run yet")


def named(resource: str, ids: Iterable[str]) -> str:
    """For sentences."""
    found = sorted(ids)
    return f"{len(found)} of {resource} ({printable(', '.join(found), _IDS_CHARS)})"


def candidates(pod: PodFacts, who: StartingContainer) -> tuple[str, ...]:
    """Returns the containers of the pod that may hold exactly these ids."""
    holders = id_holders(pod.demand.needs, who.resource)
    where = {pod.containers[holder.number]: at for at, holder in enumerate(holders)}
    if who.listed and who.listed not in where:
        return (who.listed,)
    found = indistinguishable.candidates([each.ids for each in holders], where.get(who.listed), len(who.ids))
    return tuple([pod.containers[holders[at].number] for at in found])
