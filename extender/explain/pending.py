"""Explains a pending pod: one reason for each node and card, and the fewest evictions that would make room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from halfcard.cards import Card
from halfcard.claims import Need
from halfcard.placing.card_usage import CardMode, mode_of
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import possible
from halfcard.placing.node_usage import NodeUsage
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.reasons import Reason, text, why_not, why_not_card
from halfcard.placing.records import name_of
from halfcard.placing.room import Room

from ..packing.placement import PackingPolicy, rank_of, scores
from ..preemption import fewest_victims, of_lower_priority
from ..quota_limits import UNLIMITED, QuotaLimits
from ..state import State


@dataclass(frozen=True, slots=True)
class CardFit:
    """One card as the pod meets it; `reason` is empty where it would do."""

    index: int
    name: str
    model: str
    mode: CardMode
    cores_free: int
    memory_mib_free: int | None
    parts_free: int
    pods: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class NodeFit:
    """One node as the pod meets it; `reason` is empty where the pod fits, and only then there is a score."""

    name: str
    reason: str
    score: int | None
    cards: tuple[CardFit, ...]

    @property
    def fits(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class Victim:
    pod: str
    priority: int


@dataclass(frozen=True, slots=True)
class NodeEvictions:
    """The pods whose eviction from a node would make the pod fit there."""

    node: str
    pods: tuple[Victim, ...]


@dataclass(frozen=True, slots=True)
class PendingPod:
    """The explanation of a pending pod.

    Attributes:
        nodes: the best first, then those that cannot take it.
        nearest: the fewest evictions among pods of lower priority.
        nearest_of_any_priority: the fewest evictions of all, which only a person may decide.
    """

    nodes: tuple[NodeFit, ...]
    nearest: NodeEvictions | None
    nearest_of_any_priority: NodeEvictions | None


def explain_pending(state: State, pod: PodFacts, policy: PackingPolicy, limits: QuotaLimits = UNLIMITED) -> PendingPod:
    shape, (rooms, elsewhere) = _of_cards(pod.demand), _rooms(state, pod)
    closed = _closed(state, rooms, shape, limits)
    fitting = [name for name, room in rooms.items() if possible(room, shape) and name not in closed]
    refused = sorted(rooms.keys() - set(fitting) - closed.keys())
    ranked = _ranked(rooms, fitting, pod.demand, policy)
    fits = [NodeFit(name, "", score, _cards(state, name, shape)) for name, score in ranked]
    cannot = [
        NodeFit(name, text(why_not(rooms[name], shape), shape), None, _cards(state, name, shape)) for name in refused
    ]
    cannot += [NodeFit(name, closed[name], None, ()) for name in sorted(closed)]
    strangers = [NodeFit(name, elsewhere[name], None, ()) for name in sorted(elsewhere)]
    if fits:
        return PendingPod((*fits, *cannot, *strangers), None, None)
    lower, anybody = (_nearest(state, shape, refused, priority) for priority in (pod.priority, _ABOVE_ALL))
    return PendingPod((*cannot, *strangers), lower, anybody)


def _closed(state: State, rooms: Mapping[str, Room], shape: Demand, limits: QuotaLimits) -> dict[str, str]:
    """Returns the nodes that are closed by quotas, however free they are: no eviction helps there."""
    if limits is UNLIMITED:
        return {}
    verdicts = {name: limits.why_not(state.kind(name), shape, partial(state.room, name)) for name in rooms}
    return {name: why for name, why in verdicts.items() if why}


def _of_cards(demand: Demand) -> Demand:
    """CPU and memory of the node are the scheduler's to judge."""
    return demand._replace(cpu_milli=0, memory_mib=0)


def _rooms(state: State, pod: PodFacts) -> tuple[dict[str, Room], dict[str, str]]:
    """Returns the rooms of nodes that publish what the pod requests; for other nodes, what they do not publish.

    The scheduler counts resources by name before it calls the extender. It is configured not to count those that no
    node publishes.
    """
    counted = {resource for node in state.nodes().values() for resource in node.published & pod.asks.keys()}
    rooms, elsewhere = {}, {}
    for name, node in state.nodes().items():
        room, missing = state.room(name), sorted(counted - node.published)
        if missing and node.cards:
            elsewhere[name] = f"does not offer {', '.join(missing)}"
        elif room is not None:
            rooms[name] = room
    return rooms, elsewhere


def _ranked(
    rooms: Mapping[str, Room], fitting: list[str], demand: Demand, policy: PackingPolicy
) -> list[tuple[str, int]]:
    given = scores([rank_of(rooms[name], demand, policy) for name in fitting], fitting)
    return sorted(zip(fitting, given, strict=True), key=lambda item: (-item[1], item[0]))


def _cards(state: State, name: str, demand: Demand) -> tuple[CardFit, ...]:
    holding = state.usage(name)
    if holding is None:
        return ()
    need = _in_the_way(holding.room, demand)
    tenants = _titles(state, name, holding)
    return tuple(
        _card(holding.room, at, tuple(tenants.get(at, ())), need, demand) for at in range(len(holding.room.cards))
    )


def _titles(state: State, name: str, holding: NodeUsage) -> dict[int, list[str]]:
    """Returns the pods on each used card."""
    found: dict[int, list[str]] = {}
    for facts in sorted(state.pods_on(name), key=lambda facts: facts.title):
        for at in holding.shares[facts.uid].uses if facts.uid in holding.shares else ():
            found.setdefault(at, []).append(facts.title)
    return found


def _in_the_way(room: Room, demand: Demand) -> Need:
    """The container that finds no card; the first, where each would find one for itself."""
    alone = (need for need in demand.needs if not possible(room, demand._replace(needs=(need,))))
    return next(alone, demand.needs[0])


def _card(room: Room, at: int, pods: tuple[str, ...], need: Need, demand: Demand) -> CardFit:
    card, left = room.cards[at], room.left[at]
    why = why_not_card(room, at, need, demand)
    return CardFit(
        card.index,
        name_of(card),
        card.model,
        left.mode,
        left.cores if left.mode in _DIVIDED else 0,
        (left.mib if left.mode in _DIVIDED else 0) if card.memory_mib is not None else None,
        left.parts,
        pods,
        "" if why is None else _of_card(why, card, left.mode, mode_of(need.claim, room.slices)),
    )


_DIVIDED: Final = (CardMode.FREE, CardMode.SHARED)
"""Where cores and memory are given away by the amount."""


_ALL_TAKEN: Final = {
    CardMode.EXCLUSIVE: "not wholly free",
    CardMode.HALVES: "both halves are taken",
    CardMode.SLICES: "no time slice is left",
}


def _of_card(why: Reason, card: Card, mode: CardMode, wanted: CardMode) -> str:
    match why:
        case Reason.NOT_WANTED:
            return "not what the pod asks for"
        case Reason.OUT_OF_ORDER:
            return card.why_not
        case Reason.LOCKED:
            return f"in use in another way ({mode})"
        case Reason.TOO_FEW | Reason.TOO_FEW_SLICES:
            return _ALL_TAKEN[wanted]
        case Reason.MEMORY if card.memory_mib is None:
            return "its memory is not known"
    return str(why)


# --- the nearest node ---------------------------------------------------------------------------------------

_MOST_TRIED: Final = 100
"""So many nodes are gone into, those first where the fewest pods use a card: each costs milliseconds."""

_ABOVE_ALL: Final = 2**31
"""No priority is so high."""


def fewest_evictions(
    state: State, pod: PodFacts, among: Iterable[str], limits: QuotaLimits = UNLIMITED
) -> NodeEvictions | None:
    """Returns the fewest evictions of lower priority; None where none is needed, or none would help.

    `among` are the nodes that the pod may run on at all.
    """
    shape, (rooms, _) = _of_cards(pod.demand), _rooms(state, pod)
    allowed = sorted((rooms.keys() & set(among)) - _closed(state, rooms, shape, limits).keys())
    if any(possible(rooms[name], shape) for name in allowed):
        return None
    return _nearest(state, shape, allowed, pod.priority)


def _nearest(state: State, demand: Demand, refused: Iterable[str], priority: int) -> NodeEvictions | None:
    """Prefers, among equally few evictions, the least important pods."""
    spare = {name: pods for name in refused if (pods := of_lower_priority(priority, state.pods_on(name)))}
    promising = sorted(spare, key=lambda name: (_crowd(state, name, demand), name))[:_MOST_TRIED]
    found: list[NodeEvictions] = []
    for name in promising:
        victims = fewest_victims(state.nodes()[name], state.pods_on(name), spare[name], demand)
        if victims:
            found.append(_departure(name, [each for each in spare[name] if each.uid in victims]))
        if victims and len(victims) == 1:
            break
    return min(found, key=lambda each: (len(each.pods), [victim.priority for victim in each.pods]), default=None)


def _crowd(state: State, name: str, demand: Demand) -> int:
    """How many pods use the cards that are used least: no more would have to go if all of them may."""
    holding = state.usage(name)
    if holding is None:
        return 0
    using = Counter(at for share in holding.shares.values() for at in share.uses)
    tenants = sorted(using[at] for at in holding.room.usable)
    return sum(tenants[: max(need.claim.cards for need in demand.needs)])


def _departure(node: str, victims: list[PodFacts]) -> NodeEvictions:
    told = [Victim(each.title, each.priority) for each in victims]
    return NodeEvictions(node, tuple(sorted(told, key=lambda victim: (victim.priority, victim.pod))))
