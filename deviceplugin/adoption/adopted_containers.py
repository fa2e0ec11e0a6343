"""Finds containers that another device plugin started before us: its ids are still in kubelet's checkpoint.

Invariant: such containers keep running unchanged. Their cards are those of their pod's record; else those that NVIDIA's
ids name, which then become the record; else they are unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from halfcard.cards import Node
from halfcard.placing.layouts import Layout, peaks
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.room import empty_room
from halfcard.problems import printable

from ..allocate.assignment import recorded_share
from ..device_ids import is_ours
from ..kubelet.messages import CheckpointEntry, RefusedError

_SLICE: Final = "::"
"""Between a card's uuid and the number of the slice."""

_PODS_CHARS: Final = 200

Containers = Mapping[str, frozenset[str]]
"""The ids of each container."""


class AdoptedPods(NamedTuple):
    """Pods without a record of their cards.

    Attributes:
        named: the layouts that their device ids name.
        unknown: pods whose cards nothing names.
    """

    named: tuple[tuple[PodFacts, Layout], ...] = ()
    unknown: tuple[PodFacts, ...] = ()

    @property
    def problem(self) -> str:
        """Explains why the free cards are unknown; empty where they are known."""
        if not self.unknown:
            return ""
        titles = printable(", ".join(sorted(pod.title for pod in self.unknown)), _PODS_CHARS)
        return (
            f"pods of this node ({titles}) have cards from another device plugin, and no record names them: no more is "
            "offered until these pods have ended; drain the node, or delete them"
        )


def find_adopted(entries: Iterable[CheckpointEntry], pods: Mapping[str, PodFacts], node: Node) -> AdoptedPods:
    """Returns the pods that another device plugin started; `pods` are those of the node that have not ended."""
    named, unknown = [], []
    for pod, ids in _started_by_others(entries, pods):
        layout = None if pod.has_record else _by_ids(pod, ids, node)
        if layout is not None:
            named.append((pod, layout))
        elif len(node.cards) > 1 and not _is_known(pod, node):
            unknown.append(pod)
    return AdoptedPods(tuple(named), tuple(unknown))


def _started_by_others(
    entries: Iterable[CheckpointEntry], pods: Mapping[str, PodFacts]
) -> Iterator[tuple[PodFacts, Containers]]:
    theirs: defaultdict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for each in entries:
        pod = pods.get(each.uid)
        if pod is not None and each.resource in pod.asks and not all(map(is_ours, each.ids)):
            theirs[each.uid][each.container] = each.ids
    for uid, containers in theirs.items():
        yield pods[uid], containers


def _is_known(pod: PodFacts, node: Node) -> bool:
    try:
        return recorded_share(pod, node) is not None
    except RefusedError:
        return False


def _by_ids(pod: PodFacts, ids: Containers, node: Node) -> Layout | None:
    where = {card.uuid: at for at, card in enumerate(node.cards) if card.uuid}
    found = [[where.get(_uuid(each), -1) for each in sorted(ids.get(name, ()))] for name in pod.containers]
    if not all(found) or any(at < 0 for cards in found for at in cards):
        return None
    layout = tuple([tuple(cards) for cards in found])
    return layout if _is_whole(pod, layout) and peaks(empty_room(node), pod.demand, layout) else None


def _uuid(device_id: str) -> str:
    return device_id.partition(_SLICE)[0]


def _is_whole(pod: PodFacts, layout: Layout) -> bool:
    return all(len(cards) == need.claim.cards for cards, need in zip(layout, pod.demand.needs, strict=True))
