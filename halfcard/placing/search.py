"""Searches a layout of a demand on a node, container by container; the cards that rate best are tried first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, combinations, islice
from typing import Final, NamedTuple

from ..claims import Need
from .card_usage import CardMode, CardRoom, is_closed, mode_of, use_of
from .demand import Demand
from .indistinguishable import same_cards_as
from .pod_usage import NOTHING_HELD, PodUsage, added
from .room import Room

Layout = tuple[tuple[int, ...], ...]
"""For each need, the positions of its cards."""

Rate = Callable[[Room], float]
"""Rates what remains of a node; a higher value is better."""

_MOST_STEPS: Final = 800
"""Containers of one pod are few; a pod that was made to be hard is refused rather than pondered."""

_MOST_SETS: Final = 500
"""Ways to choose the cards of one container beside those of others: likewise."""

_MOST_COMPARED: Final = 5000
"""Sets of cards that are compared by their links; eight of sixteen are more, and the first ones must do."""

_EQUAL: Final = 1e-9
"""The same numbers in another order have another sum."""


class PartialLayout(NamedTuple):
    """A layout of the first needs: what is left of each card, and by position what the pod uses of it."""

    layout: Layout
    left: tuple[CardRoom, ...]
    held: Mapping[int, PodUsage]


class Search:
    """A depth-first search; without `rate` all layouts are equally good."""

    def __init__(self, room: Room, demand: Demand, rate: Rate | None = None) -> None:
        self._room = room
        self._demand = demand
        self._rate = rate
        wanted = demand.wanted
        self._allowed = [at for at in room.usable if not wanted.narrows or wanted.allows(room.cards[at])]

    def first(self) -> PartialLayout | None:
        """Returns the first complete layout; None where there is none, or none was found within the limit of steps."""
        open_ends: list[Iterator[PartialLayout]] = [iter((PartialLayout((), self._room.left, {}),))]
        for _ in range(_MOST_STEPS):
            step = next(open_ends[-1], None)
            if step is not None and len(step.layout) == len(self._demand.needs):
                return step
            if step is not None:
                open_ends.append(self._following(step))
            elif len(open_ends) > 1:
                open_ends.pop()
            else:
                return None
        return None

    def _following(self, step: PartialLayout) -> Iterator[PartialLayout]:
        """Yields every layout of the next need."""
        number = len(step.layout)
        need = self._demand.needs[number]
        tied = same_cards_as(self._demand.needs, number)
        if tied is not None:
            positions = step.layout[tied]
            return self._onto(step, need, [positions] if len(positions) == need.claim.cards else [])
        if need.claim.cards == 1:
            return iter(self._rated(step, need))
        return self._onto(step, need, self._sets(step, need))

    def _onto(self, step: PartialLayout, need: Need, sets: Iterable[tuple[int, ...]]) -> Iterator[PartialLayout]:
        for positions in sets:
            tried: PartialLayout | None = step
            for at, times in Counter(positions).items():
                tried = tried and self._put(tried, need, at, times)
            if tried is not None:
                yield tried._replace(layout=(*step.layout, positions))

    # --- one card -----------------------------------------------------------------------------------------------------

    def _put(self, step: PartialLayout, need: Need, at: int, times: int = 1) -> PartialLayout | None:
        """Adds one card of a need, or several slices of a card; None where it does not fit."""
        card = self._room.cards[at]
        use = use_of(need.claim, card, self._room.slices, times)
        if is_closed(card, use.mode):
            return None
        held = added(step.held.get(at, NOTHING_HELD), need, use)
        left = held and held.out_of(card, self._room.left[at])
        if held is None or left is None:
            return None
        return PartialLayout(step.layout, (*step.left[:at], left, *step.left[at + 1 :]), {**step.held, at: held})

    def _rated(self, step: PartialLayout, need: Need) -> list[PartialLayout]:
        """Returns one candidate for each class of equal cards, the best first."""
        firsts = {self._kind(step, at): at for at in reversed(self._allowed)}
        tries = [(self._put(step, need, at), at) for at in reversed(firsts.values())]
        found = [
            PartialLayout((*step.layout, (at,)), tried.left, tried.held) for tried, at in tries if tried is not None
        ]
        if len(found) > 1 and self._rate is not None:
            found.sort(key=self._worth, reverse=True)
        return found

    def _kind(self, step: PartialLayout, at: int) -> Hashable:
        """Returns the class of a card: equal cards are interchangeable."""
        card = self._room.cards[at]
        return step.left[at], step.held.get(at), card.memory_mib, card.model, card.replicas, card.links, card.not_held

    def _worth(self, step: PartialLayout) -> float:
        demand, rate = self._demand, self._rate
        if rate is None:
            return 0.0
        return rate(self._room.after(step.left, cpu_milli=demand.cpu_milli, memory_mib=demand.memory_mib))

    # --- several cards ------------------------------------------------------------------------------------------------

    def _sets(self, step: PartialLayout, need: Need) -> Iterator[tuple[int, ...]]:
        """Yields sets of cards, the best first; of equivalent sets only one."""
        cards, mode = need.claim.cards, mode_of(need.claim, self._room.slices)
        fitting = {at: tried for at in self._allowed if (tried := self._put(step, need, at)) is not None}
        kinds = {at: self._kind(step, at) for at in fitting}
        most = cards if mode is CardMode.SLICES else 1
        places = [at for at in fitting for _ in range(min(most, self._room.cards[at].replicas))]
        if len(places) < cards:
            return
        seen: set[Hashable] = set()
        looks_best = self._one_by_one(step, need) if mode is CardMode.SLICES else self._at_once(fitting, kinds, need)
        for positions in chain([looks_best], islice(combinations(places, cards), _MOST_SETS)):
            alike = frozenset(Counter((kinds[at], times) for at, times in Counter(positions).items()).items())
            if len(positions) == cards and alike not in seen:
                seen.add(alike)
                yield positions

    def _one_by_one(self, step: PartialLayout, need: Need) -> tuple[int, ...]:
        """Chooses time slices one by one, each where it is rated best next to those chosen before."""
        positions: tuple[int, ...] = ()
        while len(positions) < need.claim.cards and (rated := self._rated(step, need)):
            positions += rated[0].layout[-1]
            step = rated[0]._replace(layout=step.layout)
        return positions

    def _at_once(
        self, fitting: Mapping[int, PartialLayout], kinds: Mapping[int, Hashable], need: Need
    ) -> tuple[int, ...]:
        """Chooses the cards that rate best; of equal ones, those that are connected best.

        Whole cards are all equal where their connections are known.
        """
        firsts = {kinds[at]: tried for at, tried in fitting.items()}
        linked = any(self._room.cards[at].links for at in fitting)
        alike = linked and need.claim.exclusive
        worth = {kind: 0.0 if alike else self._worth(tried) for kind, tried in firsts.items()}
        best_first = sorted(fitting, key=lambda at: -worth[kinds[at]])
        if not linked:
            return tuple(sorted(best_first[: need.claim.cards]))
        least = worth[kinds[best_first[need.claim.cards - 1]]]
        sure = [at for at in best_first if worth[kinds[at]] > least + _EQUAL]
        open_ones = [at for at in best_first[len(sure) :] if worth[kinds[at]] > least - _EQUAL]
        cards = [self._room.cards[at] for at in (*sure, *open_ones)]
        connected = _connected(tuple([(card.index, card.links) for card in cards]), need.claim.cards, len(sure))
        return tuple(sorted([(*sure, *open_ones)[number] for number in connected]))


@lru_cache(maxsize=256)
def _connected(cards: tuple[tuple[int, tuple[tuple[int, int], ...]], ...], wanted: int, sure: int) -> tuple[int, ...]:
    """Chooses the best connected of these cards, given with index and links; nodes of one kind give the same result.

    The first `sure` cards are always chosen.
    """
    strength = {(index, other): how for index, links in cards for other, how in links}

    def total(chosen: tuple[int, ...]) -> int:
        return sum([strength.get((cards[one][0], cards[other][0]), 0) for one, other in combinations(chosen, 2)])

    some = combinations(range(sure, len(cards)), wanted - sure)
    return max(((*range(sure), *more) for more in islice(some, _MOST_COMPARED)), key=total)
