"""Who would have to go so that a pod finds its cards on a node: the fewest, and only those who may be asked.

The law: without the victims the pod fits, and with any of them it does not. No smaller number would do, unless there
are too many smaller sets to go through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from math import comb
from typing import Final

from halfcard.cards import Card, Node
from halfcard.placing.card_usage import CardMode, CardRoom, CardUse, take, untouched, use_of
from halfcard.placing.demand import Demand, Need
from halfcard.placing.layouts import possible
from halfcard.placing.node_usage import NodeUsage, hold
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.room import Room

Victims = frozenset[str]

Used = dict[int, list[tuple[str, CardUse]]]
"""By the position of a card: who holds what of it."""

_NOBODY: Final[Victims] = frozenset()
_OVERFULL: Final = CardRoom(CardMode.EXCLUSIVE, 0, 0, 0)
"""Of a card of which more is promised than there is."""

_MOST_SETS: Final = 1024
"""Sets of one card's tenants that are compared: all there are of ten; a card with more may be cleared instead."""

_MOST_SMALLER_SETS: Final = 64
"""Of any tenants, for a pod that needs several cards: all pairs of ten; each costs a look at the whole node."""


def extended(node: Node, pods: Sequence[PodFacts], given: Victims, pod: PodFacts) -> Victims | None:
    """The given victims and as few more as it takes; None where nobody of lower priority frees enough."""
    staying = [each for each in pods if each.uid not in given]
    more = fewest(node, staying, below(pod.priority, staying), pod.demand)
    return None if more is None else given | more


def below(priority: int, pods: Iterable[PodFacts]) -> list[PodFacts]:
    """Pods that hold cards and may be ended for somebody of this priority."""
    return [each for each in pods if each.demand.needs and each.priority < priority]


def fewest(node: Node, pods: Sequence[PodFacts], spare: Sequence[PodFacts], demand: Demand) -> Victims | None:
    """Of the spare pods as few as possible, so that the demand fits beside the others."""
    holding = hold(node, (each.bound() for each in pods))
    used = _uses(holding)

    def room_without(victims: Victims) -> Room:
        if all(share.recorded for share in holding.shares.values()):
            return _thinned(holding, used, victims)
        return hold(node, (each.bound() for each in pods if each.uid not in victims)).room  # guesses move

    def fits_without(victims: Victims) -> bool:
        return possible(room_without(victims), demand)

    cheapest_first = sorted(spare, key=_cost)
    candidates = _candidates(holding, used, cheapest_first, demand)
    found = next((victims for victims in candidates if fits_without(victims)), None)
    if found is None:
        return None
    found = _pruned(found, spare, fits_without)
    if len(demand.needs) == 1 and demand.needs[0].claim.cards == 1:
        return found  # card by card no smaller set was left out
    holders = [each.uid for each in cheapest_first if each.uid in holding.shares]
    return next(filter(fits_without, _smaller(holders, len(found))), found)


def _smaller(uids: Sequence[str], size: int) -> Iterator[Victims]:
    """All sets of fewer but one, which were tried; none where there are too many."""
    sizes = range(2, size)
    if sum(comb(len(uids), each) for each in sizes) <= _MOST_SMALLER_SETS:
        yield from (frozenset(chosen) for each in sizes for chosen in combinations(uids, each))


def _uses(holding: NodeUsage) -> Used:
    found: Used = {at: [] for at in range(len(holding.room.cards))}
    for uid, share in holding.shares.items():
        for at, use in share.uses.items():
            found[at].append((uid, use))
    return found


def _thinned(holding: NodeUsage, used: Used, victims: Victims) -> Room:
    """As holding the others would be, at a fraction of the cost: only the victims' cards change."""
    changed = {at for uid in victims if uid in holding.shares for at in holding.shares[uid].uses}
    left = [
        _left(holding.room.cards[at], used[at], victims) if at in changed else left
        for at, left in enumerate(holding.room.left)
    ]
    return holding.room.after(tuple(left))


def _left(card: Card, uses: Iterable[tuple[str, CardUse]], victims: Victims) -> CardRoom:
    left: CardRoom | None = untouched(card)
    for uid, use in uses:
        if left is not None and uid not in victims:
            left = take(card, left, use)
    return left or _OVERFULL


def _candidates(holding: NodeUsage, used: Used, spare: Sequence[PodFacts], demand: Demand) -> Iterator[Victims]:
    """From nobody over single pods and the cards that are freed most cheaply to everybody; cheap ones stand first."""
    yield _NOBODY
    for pod in spare:
        yield frozenset({pod.uid})
    tenants = _tenants(holding, [pod.uid for pod in spare])
    if len(demand.needs) == 1:
        yield from _one_by_one(_making_room(holding.room, used, tenants, demand.needs[0]), demand.needs[0].claim.cards)
    yield from _one_by_one({at: frozenset(uids) for at, uids in tenants.items()}, len(tenants))
    if spare:
        yield frozenset(pod.uid for pod in spare)


def _tenants(holding: NodeUsage, uids: Iterable[str]) -> dict[int, list[str]]:
    """Of each usable card those who may go, in the order in which they are named."""
    tenants: dict[int, list[str]] = {at: [] for at in holding.room.usable}
    for uid in uids:
        for at in holding.shares[uid].uses if uid in holding.shares else ():
            if at in tenants:
                tenants[at].append(uid)
    return tenants


def _making_room(room: Room, used: Used, tenants: Mapping[int, Sequence[str]], need: Need) -> dict[int, Victims]:
    """By card, the fewest tenants without whom it would do for one card's worth of the need."""
    found = {}
    for at, uids in tenants.items():
        card = room.cards[at]
        use = use_of(need.claim, card, room.slices)
        sets = (frozenset(chosen) for size in range(len(uids) + 1) for chosen in combinations(uids, size))
        for victims in islice(sets, _MOST_SETS):
            if take(card, _left(card, used[at], victims), use) is not None:
                found[at] = victims
                break
    return found


def _one_by_one(freeing: Mapping[int, Victims], cards: int) -> Iterator[Victims]:
    """Card after card is freed, each time the one that costs the fewest further pods; first each by itself."""
    yield from sorted(freeing.values(), key=len)
    victims, closed = _NOBODY, dict(freeing)
    for _ in range(min(cards, len(closed))):
        at = min(closed, key=lambda at: (len(closed[at] - victims), at))
        victims |= closed.pop(at)
        yield victims


def _pruned(victims: Victims, spare: Iterable[PodFacts], fits_without: Callable[[Victims], bool]) -> Victims:
    """Whoever turns out to be in nobody's way stays; the dearest is spared first."""
    for pod in sorted(spare, key=_cost, reverse=True):
        if pod.uid in victims and fits_without(victims - {pod.uid}):
            victims -= {pod.uid}
    return victims


def _cost(pod: PodFacts) -> tuple[int, str, str]:
    """Low priority first, then the youngest: it has least to lose."""
    return pod.priority, _backwards(pod.created), pod.uid


def _backwards(text: str) -> str:
    return "".join(chr(0x7F - ord(char)) if ord(char) < 0x7F else char for char in text)
