"""For each shape of pod: which nodes can take it, why the others cannot, and what each is worth.

The law: an answer is what it would be if it were worked out now. Nodes that have not changed are not asked again and
rooms that are alike are judged once, so that a call costs by the names in it and not by the cluster behind it.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import filterfalse
from typing import Any, Final, TypeVar

from halfcard.placing.demand import Demand
from halfcard.placing.layouts import best, possible_where
from halfcard.placing.refusals import Why, text, why_not
from halfcard.placing.room import Room

from .likeness import Likeness, tells_cards_apart
from .placement import WORST, Policy
from .state import State
from .wire import unformatted

_MOST_SHAPES: Final = 64
"""A shape of 5,000 nodes keeps about half a megabyte."""

_MOST_NAMES: Final = 100_000
_MOST_KINDS: Final = 20_000
"""What a shape remembers; beyond that it begins anew: callers may ask for any name, and rooms change."""

FITS: Final = ""
"""No reason against it."""

K = TypeVar("K")
V = TypeVar("V")


class _Known(dict[K, V]):
    """What was worked out; `missing` works out the rest. Thousands of names are looked up without a loop of ours."""

    def __init__(self, missing: Callable[[K], V], most: int) -> None:
        super().__init__()
        self._missing = missing
        self._most = most

    def __missing__(self, key: K) -> V:
        if len(self) >= self._most:
            self.clear()
        value = self[key] = self._missing(key)
        return value

    def all(self, keys: Iterable[K]) -> list[V]:
        return [*map(self.__getitem__, keys)]


class Feasible:
    """Of one shape: the nodes that can take it, and the reason of each other one."""

    def __init__(self, state: State, demand: Demand) -> None:
        self._state = state
        self._demand = demand
        self._texts = {why: unformatted(text(why, demand)) for why in Why}
        self._then = state.changes.now
        self._fits = _Known(partial(possible_where, demand), _MOST_KINDS)
        self._judged = _Known(self._judge, _MOST_KINDS)
        self._told = _nobody()
        self._ask_all()

    def catch_up(self) -> None:
        changed = self._state.changes.since(self._then)
        self._then = self._state.changes.now
        if changed is None:
            self._ask_all()
        else:
            self._ask(changed)

    def among(self, names: list[str]) -> dict[str, list[str]]:
        """These names by reason; `FITS` is that of the nodes that can take it."""
        found: dict[str, list[str]] = {}
        rest = names
        for reason, told in self._told.items():
            if told.issuperset(rest):
                return {**found, reason: rest} if rest else found
            if here := [*filter(told.__contains__, rest)]:
                found[reason] = here
                rest = [*filterfalse(told.__contains__, rest)]
        return {**found, self.unknown: rest}

    @property
    def unknown(self) -> str:
        return self._texts[Why.UNKNOWN]

    def of(self, room: Room) -> str:
        """The reason of a room, whosever it is."""
        return FITS if self._fits[room.slices](room) else self._texts[why_not(room, self._demand)]

    def _ask_all(self) -> None:
        self._told = _nobody()
        if tells_cards_apart(self._demand):
            return self._ask(self._state.likenesses())
        for likeness, names in self._state.alike().items():
            self._told[self._judged[likeness]].update(names)
        return None

    def _ask(self, names: Iterable[str]) -> None:
        alike = self._state.likenesses()
        for name in names:
            for told in self._told.values():
                told.discard(name)
            if (likeness := alike.get(name)) is not None:
                self._told[self._reason(name, likeness)].add(name)

    def _reason(self, name: str, likeness: Likeness) -> str:
        if tells_cards_apart(self._demand) and (room := self._state.room(name)) is not None:
            return self.of(room)
        return self._judged[likeness]

    def _judge(self, likeness: Likeness) -> str:
        return self.of(likeness.room)


def _nobody() -> defaultdict[str, set[str]]:
    """By reason; those that fit are looked for first."""
    return defaultdict(set, {FITS: set()})


class Ranked:
    """Of one shape and one policy: what each node that was asked about gains, the more the better."""

    def __init__(self, state: State, demand: Demand, policy: Policy) -> None:
        self._state = state
        self._demand = demand
        self._policy = policy
        self._then = state.changes.now
        self._ranks = _Known(self._rank, _MOST_NAMES)
        self._judged = _Known(self._judge, _MOST_KINDS)

    def catch_up(self) -> None:
        changed = self._state.changes.since(self._then)
        self._then = self._state.changes.now
        if changed is None:
            self._ranks.clear()
        else:
            for name in changed:
                self._ranks.pop(name, None)

    def ranks(self, names: Iterable[str]) -> list[float]:
        return self._ranks.all(names)

    def _rank(self, name: str) -> float:
        room = self._state.room(name)
        if room is None:
            return WORST
        likeness = self._state.likenesses()[name]
        if tells_cards_apart(self._demand) or likeness.is_linked:
            return rank_of(room, self._demand, self._policy)
        return self._judged[likeness, room.cpu_milli, room.memory_mib]

    def _judge(self, kind: tuple[Likeness, int, int]) -> float:
        likeness, cpu_milli, memory_mib = kind
        room = replace(likeness.room, cpu_milli=cpu_milli, memory_mib=memory_mib)
        return rank_of(room, self._demand, self._policy)


def rank_of(room: Room | None, demand: Demand, policy: Policy) -> float:
    """By the best way to lay the demand there; `WORST` where there is none."""
    laid = best(room, demand, policy.value) if room is not None else None
    if room is None or laid is None:
        return WORST
    return policy.rank(policy.value(laid.room) - policy.value(room))


class Answers:
    """The shapes that were asked for most recently."""

    def __init__(self, state: State, policy_of: Callable[[str], Policy]) -> None:
        self._state = state
        self._policy_of = policy_of
        self._feasible: OrderedDict[tuple[Demand, str], Feasible] = OrderedDict()
        self._ranked: OrderedDict[Demand, Ranked] = OrderedDict()

    def feasible(self, demand: Demand) -> Feasible:
        """CPU and memory of the node are the scheduler's to judge."""
        shape = demand._replace(cpu_milli=0, memory_mib=0), demand.wanted.text
        found = self._feasible.get(shape)
        if found is None:
            found = self._feasible[shape] = Feasible(self._state, shape[0])
        else:
            found.catch_up()
        _used(self._feasible, shape)
        return found

    def ranked(self, demand: Demand) -> Ranked:
        found = self._ranked.get(demand)
        if found is None:
            found = self._ranked[demand] = Ranked(self._state, demand, self._policy_of(demand.wanted.policy))
        else:
            found.catch_up()
        _used(self._ranked, demand)
        return found

    def policy_changed(self) -> None:
        """What nodes are worth has changed everywhere."""
        self._ranked.clear()


def _used(shapes: OrderedDict[Any, Any], shape: object) -> None:
    shapes.move_to_end(shape)
    if len(shapes) > _MOST_SHAPES:
        shapes.popitem(last=False)
