"""Chooses the victims of a preemption: the fewest pods whose eviction makes a pod fit on a node.

Invariant: without the victims the pod fits, and with any of them it does not. No smaller number would do, unless there
are too many smaller sets to try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from math import comb
from typing import Final

from halfcard.cards import Card, Node
from halfcard.claims import Need
from halfcard.placing.card_usage import CardMode, CardRoom, CardUse, take, untouched, use_of
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import fits
from halfcard.placing.node_usage import NodeUsage, usage_of_pods
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.room import Room

Victims = frozenset[str]

Uses = dict[int, list[tuple[str, CardUse]]]
"""For the position of each card the pods on it, and what each uses of it."""

_NO_VICTIMS: Final[Victims] = frozenset()
_OVERCOMMITTED: Final = CardRoom(CardMode.EXCLUSIVE, 0, 0, 0)
"""The room of a card that is used beyond its amounts."""

_MAX_SETS: Final = 1024
"""Sets of pods on one card that are tried: all sets of ten pods; a card with more pods may be cleared instead."""

_MAX_SMALLER_SETS: Final = 64
"""Smaller sets that are tried for a pod that needs several cards: all pairs of ten pods; each reads the whole node."""


def extend_victims(node: Node, pods: Sequence[PodFacts], proposed: Victims, pod: PodFacts) -> Victims | None:
    """Extends the proposed victims by as few as needed; None where lower priorities do not free enough."""
    remaining = [each for each in pods if each.uid not in proposed]
    more = fewest_victims(node, remaining, of_lower_priority(pod.priority, remaining), pod.demand)
    return None if more is None else proposed | more


def of_lower_priority(priority: int, pods: Iterable[PodFacts]) -> list[PodFacts]:
    """Returns the pods that hold cards and have a lower priority."""
    return [each for each in pods if each.demand.needs and each.priority < priority]


def fewest_victims(
    node: Node, pods: Sequence[PodFacts], evictable: Sequence[PodFacts], demand: Demand
) -> Victims | None:
    """Returns the fewest of the evictable pods without which the demand fits."""
    usage = usage_of_pods(node, (each.bound() for each in pods))
    uses = _uses_of_cards(usage)

    def room_without(victims: Victims) -> Room:
        if all(share.recorded for share in usage.shares.values()):
            return _room_without(usage, uses, victims)
        return usage_of_pods(
            node, (each.bound() for each in pods if each.uid not in victims)
        ).room  # guessed cards may change

    def fits_without(victims: Victims) -> bool:
        return fits(room_without(victims), demand)

    cheapest_first = sorted(evictable, key=_cost)
    candidates = _candidates(usage, uses, cheapest_first, demand)
    found = next((victims for victims in candidates if fits_without(victims)), None)
    if found is None:
        return None
    found = _pruned(found, evictable, fits_without)
    if len(demand.needs) == 1 and demand.needs[0].claim.cards == 1:
        return found  # _making_room has tried all smaller sets on each card
    holders = [each.uid for each in cheapest_first if each.uid in usage.shares]
    return next(filter(fits_without, _smaller(holders, len(found))), found)


def _smaller(uids: Sequence[str], size: int) -> Iterator[Victims]:
    """Yields all smaller sets of at least two pods; none where there are too many. Single pods were tried before."""
    sizes = range(2, size)
    if sum(comb(len(uids), each) for each in sizes) <= _MAX_SMALLER_SETS:
        yield from (frozenset(chosen) for each in sizes for chosen in combinations(uids, each))


def _uses_of_cards(usage: NodeUsage) -> Uses:
    found: Uses = {at: [] for at in range(len(usage.room.cards))}
    for uid, share in usage.shares.items():
        for at, use in share.uses.items():
            found[at].append((uid, use))
    return found


def _room_without(usage: NodeUsage, uses: Uses, victims: Victims) -> Room:
    """Computes the room without the victims at a fraction of the cost of a rebuild: only their cards change."""
    changed = {at for uid in victims if uid in usage.shares for at in usage.shares[uid].uses}
    left = [
        _rest_of_card(usage.room.cards[at], uses[at], victims) if at in changed else left
        for at, left in enumerate(usage.room.left)
    ]
    return usage.room.after(tuple(left))


def _rest_of_card(card: Card, uses: Iterable[tuple[str, CardUse]], victims: Victims) -> CardRoom:
    left: CardRoom | None = untouched(card)
    for uid, use in uses:
        if left is not None and uid not in victims:
            left = take(card, left, use)
    return left or _OVERCOMMITTED


def _candidates(usage: NodeUsage, uses: Uses, evictable: Sequence[PodFacts], demand: Demand) -> Iterator[Victims]:
    """Yields candidates from no victim, over single pods and the cheapest cards, to all; cheap ones first."""
    yield _NO_VICTIMS
    for pod in evictable:
        yield frozenset({pod.uid})
    holders = _holders(usage, [pod.uid for pod in evictable])
    if len(demand.needs) == 1:
        yield from _one_by_one(_making_room(usage.room, uses, holders, demand.needs[0]), demand.needs[0].claim.cards)
    yield from _one_by_one({at: frozenset(uids) for at, uids in holders.items()}, len(holders))
    if evictable:
        yield frozenset(pod.uid for pod in evictable)


def _holders(usage: NodeUsage, uids: Iterable[str]) -> dict[int, list[str]]:
    """Returns the candidates on each usable card, in the given order."""
    holders: dict[int, list[str]] = {at: [] for at in usage.room.usable}
    for uid in uids:
        for at in usage.shares[uid].uses if uid in usage.shares else ():
            if at in holders:
                holders[at].append(uid)
    return holders


def _making_room(room: Room, uses: Uses, holders: Mapping[int, Sequence[str]], need: Need) -> dict[int, Victims]:
    """Returns for each card the fewest pods without which it would serve one card's worth of the need."""
    found = {}
    for at, uids in holders.items():
        card = room.cards[at]
        use = use_of(need.claim, card, room.slices)
        sets = (frozenset(chosen) for size in range(len(uids) + 1) for chosen in combinations(uids, size))
        for victims in islice(sets, _MAX_SETS):
            if take(card, _rest_of_card(card, uses[at], victims), use) is not None:
                found[at] = victims
                break
    return found


def _one_by_one(freeing: Mapping[int, Victims], cards: int) -> Iterator[Victims]:
    """Yields the victims of each single card, then of more and more cards, always adding the one with fewest pods."""
    yield from sorted(freeing.values(), key=len)
    victims, unfreed = _NO_VICTIMS, dict(freeing)
    for _ in range(min(cards, len(unfreed))):
        at = min(unfreed, key=lambda at: (len(unfreed[at] - victims), at))
        victims |= unfreed.pop(at)
        yield victims


def _pruned(victims: Victims, evictable: Iterable[PodFacts], fits_without: Callable[[Victims], bool]) -> Victims:
    """Drops victims whose eviction turns out to be unnecessary, the most important first."""
    for pod in sorted(evictable, key=_cost, reverse=True):
        if pod.uid in victims and fits_without(victims - {pod.uid}):
            victims -= {pod.uid}
    return victims


def _cost(pod: PodFacts) -> tuple[int, str, str]:
    """Orders pods for eviction: low priority first, then the youngest, which loses least."""
    return pod.priority, _backwards(pod.created), pod.uid


def _backwards(text: str) -> str:
    return "".join(chr(0x7F - ord(char)) if ord(char) < 0x7F else char for char in text)
