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
from halfcard.placing.layouts import possible
from halfcard.placing.node_usage import NodeUsage, hold
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.room import Room

Victims = frozenset[str]

Used = dict[int, list[tuple[str, CardUse]]]
"""By the position of a card: who holds what of it."""

_NOBODY: Final[Victims] = frozenset()
_OVERFULL: Final = CardRoom(CardMode.EXCLUSIVE, 0, 0, 0)
"""The room of a card that is used beyond its amounts."""

_MOST_SETS: Final = 1024
"""Sets of one card's tenants that are compared: all there are of ten; a card with more may be cleared instead."""

_MOST_SMALLER_SETS: Final = 64
"""Of any tenants, for a pod that needs several cards: all pairs of ten; each costs a look at the whole node."""


def extend_victims(node: Node, pods: Sequence[PodFacts], given: Victims, pod: PodFacts) -> Victims | None:
    """Extends the given victims by as few as needed; None where lower priorities do not free enough."""
    staying = [each for each in pods if each.uid not in given]
    more = fewest_victims(node, staying, of_lower_priority(pod.priority, staying), pod.demand)
    return None if more is None else given | more


def of_lower_priority(priority: int, pods: Iterable[PodFacts]) -> list[PodFacts]:
    """Returns the pods that hold cards and have a lower priority."""
    return [each for each in pods if each.demand.needs and each.priority < priority]


def fewest_victims(node: Node, pods: Sequence[PodFacts], spare: Sequence[PodFacts], demand: Demand) -> Victims | None:
    """Returns the fewest of the spare pods without which the demand fits."""
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
    """Computes the room without the victims at a fraction of the cost of a rebuild: only their cards change."""
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
    """Yields candidates from no victim, over single pods and the cheapest cards, to all; cheap ones first."""
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
    """Returns the candidates on each usable card, in the given order."""
    tenants: dict[int, list[str]] = {at: [] for at in holding.room.usable}
    for uid in uids:
        for at in holding.shares[uid].uses if uid in holding.shares else ():
            if at in tenants:
                tenants[at].append(uid)
    return tenants


def _making_room(room: Room, used: Used, tenants: Mapping[int, Sequence[str]], need: Need) -> dict[int, Victims]:
    """Returns for each card the fewest pods without which it would serve one card's worth of the need."""
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
    """Drops victims whose eviction turns out to be unnecessary, the most important first."""
    for pod in sorted(spare, key=_cost, reverse=True):
        if pod.uid in victims and fits_without(victims - {pod.uid}):
            victims -= {pod.uid}
    return victims


def _cost(pod: PodFacts) -> tuple[int, str, str]:
    """Low priority first, then the youngest: it has least to lose."""
    return pod.priority, _backwards(pod.created), pod.uid


def _backwards(text: str) -> str:
    return "".join(chr(0x7F - ord(char)) if ord(char) < 0x7F else char for char in text)
