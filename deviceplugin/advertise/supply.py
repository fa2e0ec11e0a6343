"""Computes how much the node offers of each resource, as device ids for kubelet or as a number in its status.

Invariant: the total of a resource is what live pods hold of it plus what it could take now, card by card. So pods that
were bound together are admitted in any order, and nothing is offered below what live pods hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.placing.card_usage import untouched
from halfcard.placing.node_totals import offers, slots, totals
from halfcard.placing.room import Room

MOST_IDS: Final = 4000
"""Kubelet iterates over all ids at every change: with 20,000 that took 15 seconds."""

SLOTS: Final = 512
"""The ids of halfcard.dev/slot: more than a node has containers."""

_SETTING: Final = "node_resources"
_BESIDE: Final = frozenset({names.SLOT, names.ALIYUN_GPU_COUNT})
"""Resources that give no part of a card by themselves."""


@dataclass(frozen=True, slots=True)
class OfferRules:
    """The settings that decide what is offered.

    Attributes:
        resources: the offered resources.
        hami_split: how many containers may share a card under nvidia.com/gpu.
    """

    resources: tuple[str, ...]
    dialects: Dialects
    hami_split: int = 1


class Supply(NamedTuple):
    """What is offered, by resource.

    Attributes:
        ids: published as device ids.
        status: only written into the node's status.
        problems: what is not offered, and why.
    """

    ids: Mapping[str, int]
    status: Mapping[str, int]
    problems: tuple[str, ...]


def supply(room: Room, asks: Iterable[Mapping[str, int]], rules: OfferRules) -> Supply:
    """Computes what is offered; `asks` is what each live pod on the node requests."""
    held: Counter[str] = Counter()
    for each in asks:
        held.update(each)
    offered = _offered(room, held, rules)
    in_status = offered.keys() & rules.dialects.without_ids
    status = {resource: offered.pop(resource) for resource in in_status}
    if names.ALIYUN_GPU_MEM in rules.resources:
        status[names.ALIYUN_GPU_COUNT] = len(room.cards)
    if in_status:
        offered[names.SLOT] = SLOTS
    most = _offered(_empty(room), Counter(), rules)
    left_out = _too_many({resource: most.get(resource, SLOTS) for resource in offered})
    for resource in [
        each for each in left_out if rules.dialects.companions.get(each) in offered.keys() - left_out.keys()
    ]:
        status[resource] = offered[resource]
        del left_out[resource]
    ids = {resource: total for resource, total in offered.items() if resource not in left_out.keys() | status.keys()}
    still_held = {resource: held[resource] for resource in left_out if held[resource]}
    return Supply(ids | still_held, status, (*left_out.values(), *_contradictions(room, rules)))


def held_only(found: Supply, asks: Iterable[Mapping[str, int]], why: str) -> Supply:
    """Offers only what live pods hold, while the free cards are unknown."""
    held: Counter[str] = Counter()
    for each in asks:
        held.update(each)

    def kept(totals: Mapping[str, int]) -> dict[str, int]:
        return {each: total if each in _BESIDE else min(total, held[each]) for each, total in totals.items()}

    return Supply(kept(found.ids), kept(found.status), (*found.problems, why) if why else found.problems)


def _offered(room: Room, held: Counter[str], rules: OfferRules) -> dict[str, int]:
    chosen = {each: offer for each, offer in offers(rules.dialects.table).items() if each in rules.resources}
    found = totals(room, (held,), chosen)
    if names.NVIDIA_GPU not in rules.resources:
        found.pop(room.slices, None)
    elif rules.hami_split > 1 and room.slices != names.NVIDIA_GPU:
        found[names.NVIDIA_GPU] = slots(room, held[names.NVIDIA_GPU], rules.hami_split)
    return found


def _empty(room: Room) -> Room:
    """Returns the room with unused healthy cards, so that what is left out does not come and go with pods."""
    cards = tuple([replace(card, why_not="") for card in room.cards])
    return Room(cards, tuple([untouched(card) for card in cards]), room.slices)


def _too_many(most: Mapping[str, int]) -> dict[str, str]:
    """Returns the resources to leave out, the largest first, each with the reason."""
    kept = dict(most)
    left_out = {}
    while (together := sum(kept.values())) > MOST_IDS:
        largest = max(kept, key=lambda resource: kept[resource])
        left_out[largest] = (
            f"{_SETTING}: got {largest}, which has {kept.pop(largest)} device ids on this node, and {together} with the"
            f" others; a node has at most {MOST_IDS}, since kubelet iterates over all of them at every change; it is"
            f" not offered: name fewer resources, or one that counts memory in MiB, which needs no ids"
        )
    return left_out


def _contradictions(room: Room, rules: OfferRules) -> Iterable[str]:
    if rules.hami_split > 1 and room.slices == names.NVIDIA_GPU and names.NVIDIA_GPU in rules.resources:
        yield (
            f"hami_device_split: got {rules.hami_split}, while this node sells time slices as {names.NVIDIA_GPU}; the"
            f" name can count only one of them, here the slices; set renameByDefault in the time-slicing configuration"
        )
