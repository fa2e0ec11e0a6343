"""Keeps for each demand which nodes can take it, why the others cannot, and the rank of each.

Invariant: a cached answer equals a new one. Only nodes that changed are judged again, and equal rooms are judged once,
so that the cost of a call depends on the names in it and not on the size of the cluster. Reasons and ranks are single
characters, so that a call over thousands of names is answered by str.translate and bytes operations instead of a loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, filterfalse, islice
from typing import Any, Final, TypeVar

from halfcard.placing.demand import Demand
from halfcard.placing.layouts import best, possible_where
from halfcard.placing.reasons import Reason, text, why_not_where
from halfcard.placing.room import Room

from ..node_classes import NodeClass, names_single_cards
from ..packing.placement import WORST, PackingPolicy, encode_scores
from ..state import State
from .score_cache import ScoreCache
from .wire import SharedNames, escape_percent, prioritize_answer

_MOST_SHAPES: Final = 64
"""A shape of 5,000 nodes keeps about a quarter of a megabyte."""

_MOST_TOLD: Final = 8
"""Of these it is kept how each node's score was written: as much again, and more."""

_MOST_NAMES: Final = 100_000
_MOST_KINDS: Final = 20_000
"""What a shape remembers; beyond that it begins anew: callers may ask for any name, and rooms change."""

_MOST_RANKS: Final = 10_000
"""Likewise, of ranks; in use are at most some hundred."""

FITS: Final = ""
"""No reason against it."""

_ONLY: Final = [bytes([other == at for other in range(256)]) for at in range(len(Reason) + 1)]

K = TypeVar("K")
V = TypeVar("V")


class _Known(dict[K, V]):
    """A dict that computes a missing value and is cleared when it is full; lookups of thousands need no Python loop."""

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


class _Reasons(dict[str, str]):
    """Maps each node to the letter of its reason."""

    def __init__(self, of_strangers: str) -> None:
        super().__init__()
        self._of_strangers = of_strangers

    def __missing__(self, _name: str) -> str:
        return self._of_strangers

    def of(self, names: Iterable[str]) -> str:
        return "".join(map(self.__getitem__, names))


class FeasibleNodes:
    """The nodes that can take one demand, and the reason of each other node."""

    def __init__(self, state: State, demand: Demand) -> None:
        self._state = state
        self._demand = demand
        self._texts = {why: escape_percent(text(why, demand)) for why in Reason}
        self._reasons = [*dict.fromkeys((FITS, *self._texts.values()))]
        self._letters = {reason: chr(at) for at, reason in enumerate(self._reasons)}
        self._then = state.changes.now
        self._fits = _Known(partial(possible_where, demand), _MOST_KINDS)
        self._why_not = _Known(partial(why_not_where, demand), _MOST_KINDS)
        self._judged: dict[NodeClass, str] = {}
        self._of_nodes = _Reasons(self._letters[self.unknown])
        self._everywhere: Mapping[str, Sequence[str]] | None = None
        self._ask_all()

    def catch_up(self) -> None:
        changed = self._state.changes.since(self._then)
        self._then = self._state.changes.now
        if changed is None:
            self._ask_all()
        elif changed:
            self._ask(changed)

    def among(self, names: Sequence[str], *, known: bool = False) -> dict[str, Sequence[str]]:
        """These names by reason; `FITS` is that of the nodes that can take it. `known` is as in `Roll.read`.

        Most calls ask about nearly all nodes: then the answer is that for all of them, less the others.
        """
        others = self._state.node_names.others(names, known=known) if 2 * len(names) > len(self._of_nodes) else None
        if others is None:
            return self._by_reason(names, self._of_nodes.of(names))
        if self._everywhere is None:
            everywhere = self._by_reason([*self._of_nodes], "".join(self._of_nodes.values()))
            self._everywhere = {reason: SharedNames(told) for reason, told in everywhere.items()}
        if not others:
            return {**self._everywhere}
        left = {reason: [*filterfalse(others.__contains__, told)] for reason, told in self._everywhere.items()}
        return {reason: told for reason, told in left.items() if told}

    def _by_reason(self, names: Sequence[str], letters: str) -> dict[str, Sequence[str]]:
        codes, found = letters.encode("latin-1"), {}
        for at, reason in enumerate(self._reasons):
            if many := codes.count(at):
                found[reason] = names if many == len(names) else [*compress(names, codes.translate(_ONLY[at]))]
        return found

    @property
    def unknown(self) -> str:
        return self._texts[Reason.NO_CARDS]

    def of(self, room: Room) -> str:
        """The reason of a room, whosever it is."""
        return FITS if self._fits[room.slices](room) else self._texts[self._why_not[room.slices](room)]

    def _ask_all(self) -> None:
        names = [*self._state.node_names.names()]
        self._everywhere = None
        self._of_nodes.clear()
        self._of_nodes.update(zip(names, self._judge(names), strict=True))

    def _ask(self, changed: set[str]) -> None:
        nodes = self._state.nodes()
        known = [name for name in changed if name in nodes]
        judged = zip(known, self._judge(known), strict=True)
        found = {name: letter for name, letter in judged if self._of_nodes.get(name) != letter}
        gone = [name for name in changed if name not in nodes and name in self._of_nodes]
        for name in gone:
            del self._of_nodes[name]
        self._of_nodes.update(found)
        if found or gone:
            self._everywhere = None

    def _judge(self, names: Sequence[str]) -> list[str]:
        """Judges known nodes."""
        if names_single_cards(self._demand):
            rooms = filter(None, map(self._state.room, names))
            return [self._letters[self.of(room)] for room in rooms]
        kinds = [*map(self._state.node_classes().__getitem__, names)]
        if len(self._judged) >= _MOST_KINDS:
            self._judged.clear()
        self._judge_kinds({*kinds}.difference(self._judged))
        return [*map(self._judged.__getitem__, kinds)]

    def _judge_kinds(self, kinds: Iterable[NodeClass]) -> None:
        """Judges node classes. A new claim is judged for a thousand classes here, so nothing more is called."""
        fits, judged = self._letters[FITS], self._judged
        for kind in kinds:
            room = kind.room
            if self._fits[room.slices](room):
                judged[kind] = fits
            else:
                judged[kind] = self._letters[self._texts[self._why_not[room.slices](room)]]


class RankedNodes:
    """The ranks of nodes for one demand and one policy; higher is better."""

    def __init__(self, state: State, demand: Demand, policy: PackingPolicy) -> None:
        self._state = state
        self._demand = demand
        self._policy = policy
        self._then = state.changes.now
        self._ranks: list[float] = []
        self._letters = _Known(self._new_letter, _MOST_NAMES)
        self._of_nodes = _Known(self._letter_of, _MOST_NAMES)
        self._judged = _Known(self._judge, _MOST_KINDS)
        self._told: ScoreCache | None = None

    def catch_up(self) -> None:
        changed = self._state.changes.since(self._then)
        self._then = self._state.changes.now
        if changed is None or len(self._ranks) > _MOST_RANKS:
            self._forget()
        elif changed:
            for name in changed:
                self._of_nodes.pop(name, None)
            if self._told is not None:
                self._told.change(changed)

    def forget_told(self) -> None:
        """A few hundred kilobytes."""
        self._told = None

    def _forget(self) -> None:
        self.forget_told()
        self._of_nodes.clear()
        self._letters.clear()
        self._ranks.clear()

    def ranks(self, names: Iterable[str]) -> list[float]:
        return [self._ranks[ord(letter)] for letter in self._of_nodes.all(names)]

    def told(self, names: Sequence[str]) -> bytes:
        """Encodes the answer for these nodes, which are those of the filter answer, in the same order."""
        if self._told is None or self._told.names != names:
            if len({*names}) < len(names):
                letters = "".join(self._of_nodes.all(names))
                return prioritize_answer(names, encode_scores(self._ranks, letters, names))
            self._told = ScoreCache(names, self._of_nodes.__getitem__)
        return self._told.answer(self._ranks)

    def _letter_of(self, name: str) -> str:
        return self._letters[self._rank(name)]

    def _new_letter(self, rank: float) -> str:
        """Returns a new letter for a rank among those seen."""
        self._ranks.append(rank)
        return chr(len(self._ranks) - 1)

    def _rank(self, name: str) -> float:
        room = self._state.room(name)
        if room is None:
            return WORST
        likeness = self._state.node_classes()[name]
        if names_single_cards(self._demand) or likeness.is_linked:
            return rank_of(room, self._demand, self._policy)
        return self._judged[likeness, room.cpu_milli, room.memory_mib]

    def _judge(self, kind: tuple[NodeClass, int, int]) -> float:
        likeness, cpu_milli, memory_mib = kind
        room = replace(likeness.room, cpu_milli=cpu_milli, memory_mib=memory_mib)
        return rank_of(room, self._demand, self._policy)


def rank_of(room: Room | None, demand: Demand, policy: PackingPolicy) -> float:
    """Ranks the best layout of the demand in the room; `WORST` where there is none."""
    laid = best(room, demand, policy.value) if room is not None else None
    if room is None or laid is None:
        return WORST
    return policy.rank(policy.value(laid.room) - policy.value(room))


class AnswerCache:
    """The shapes that were asked for most recently."""

    def __init__(self, state: State, policy_of: Callable[[str], PackingPolicy]) -> None:
        self._state = state
        self._policy_of = policy_of
        self._feasible: OrderedDict[tuple[Demand, str], FeasibleNodes] = OrderedDict()
        self._ranked: OrderedDict[Demand, RankedNodes] = OrderedDict()

    def feasible(self, demand: Demand) -> FeasibleNodes:
        """CPU and memory of the node are the scheduler's to judge."""
        shape = demand._replace(cpu_milli=0, memory_mib=0), demand.wanted.text
        found = self._feasible.get(shape)
        if found is None:
            found = self._feasible[shape] = FeasibleNodes(self._state, shape[0])
        else:
            found.catch_up()
        _used(self._feasible, shape)
        return found

    def ranked(self, demand: Demand) -> RankedNodes:
        found = self._ranked.get(demand)
        if found is None:
            found = self._ranked[demand] = RankedNodes(self._state, demand, self._policy_of(demand.wanted.policy))
        else:
            found.catch_up()
        _used(self._ranked, demand)
        for other in islice(reversed(self._ranked.values()), _MOST_TOLD, _MOST_TOLD + 1):
            other.forget_told()
        return found

    def policy_changed(self) -> None:
        """Drops all ranks, because the policy has changed."""
        self._ranked.clear()


def _used(shapes: OrderedDict[Any, Any], shape: object) -> None:
    shapes.move_to_end(shape)
    if len(shapes) > _MOST_SHAPES:
        shapes.popitem(last=False)
