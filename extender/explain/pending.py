"""Explains a pending pod: one reason for each node and card, and the fewest evictions that would make room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from halfcard import names
from halfcard.cards import Card
from halfcard.claims import Need
from halfcard.placing.card_usage import CardMode, mode_of
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import fits
from halfcard.placing.node_totals import offers, short_of
from halfcard.placing.node_usage import NodeUsage
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.reasons import Reason, text, why_not, why_not_card
from halfcard.placing.records import name_of
from halfcard.placing.room import Room

from ..closed_nodes import why_closed
from ..left_to_drivers import explanation
from ..packing.placement import PackingPolicy, rank_of, scores
from ..preemption import fewest_victims, of_lower_priority
from ..quota_limits import UNLIMITED, QuotaLimits
from ..state import State


@dataclass(frozen=True, slots=True)
class CardFit:
    """One card for the pod; `reason` is empty if a container of the pod would fit on it."""

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
    """One node for the pod; `reason` is empty if the pod fits, and only then `score` is set."""

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
        nodes: the nodes that can take it, best first, then all others.
        nearest: the fewest evictions among pods of lower priority.
        nearest_of_any_priority: the fewest evictions among all pods, which Halfcard never makes by itself.
    """

    nodes: tuple[NodeFit, ...]
    nearest: NodeEvictions | None
    nearest_of_any_priority: NodeEvictions | None


def explain_pending(state: State, pod: PodFacts, policy: PackingPolicy, limits: QuotaLimits = UNLIMITED) -> PendingPod:
    demand, (rooms, unpublished) = _without_node_resources(pod.demand), _rooms(state, pod)
    closed = _closed(state, rooms, demand, limits)
    roomy = [name for name, room in rooms.items() if fits(room, demand) and name not in closed]
    closed |= {name: why for name in roomy if (why := _withdrawn(state, name, pod) or _short(state, name, pod))}
    fitting = [name for name in roomy if name not in closed]
    refused = sorted(rooms.keys() - set(fitting) - closed.keys())
    ranked = _ranked(rooms, fitting, pod.demand, policy)
    nodes_that_fit = [NodeFit(name, "", score, _cards(state, name, demand)) for name, score in ranked]
    cannot = [
        NodeFit(name, _refusal(state, name, pod, rooms[name]), None, _cards(state, name, demand)) for name in refused
    ]
    cannot += [NodeFit(name, closed[name], None, ()) for name in sorted(closed)]
    without_resources = [NodeFit(name, unpublished[name], None, ()) for name in sorted(unpublished)]
    if nodes_that_fit:
        return PendingPod((*nodes_that_fit, *cannot, *without_resources), None, None)
    lower, of_any_priority = (_nearest(state, demand, refused, priority) for priority in (pod.priority, _ANY_PRIORITY))
    return PendingPod((*cannot, *without_resources), lower, of_any_priority)


def _refusal(state: State, name: str, pod: PodFacts, room: Room) -> str:
    driver = state.driver(name)
    if driver:
        return explanation(pod, driver)
    why = why_not(room, pod.demand)
    return f"{text(why, pod.demand)}: {_not_held(room)}" if why is Reason.NOT_HELD else text(why, pod.demand)


def _not_held(room: Room) -> str:
    return next(card.not_held for card in room.cards if card.not_held)


def _closed(state: State, rooms: Mapping[str, Room], demand: Demand, limits: QuotaLimits) -> dict[str, str]:
    """Returns the reason of each node that quotas close; evictions do not help there."""
    if limits is UNLIMITED:
        return {}
    verdicts = {name: why_closed(limits, state, name, demand) for name in rooms}
    return {name: why for name, why in verdicts.items() if why}


def _short(state: State, name: str, pod: PodFacts) -> str:
    """Returns what kube-scheduler finds too little of on a node with fitting cards: memory that whole cards name.

    Only Halfcard's agent, which publishes uuids, advertises what its free cards have.
    """
    node, room = state.nodes()[name], state.room(name)
    if room is None or not any(card.uuid for card in node.cards):
        return ""
    table = {each: offer for each, offer in offers(state.dialects.table).items() if each in node.published}
    lacks = short_of(room, pod.asks, table)
    return ", ".join(
        [f"has {free} of {each} free, of {pod.asks[each]} that the pod requests" for each, free in lacks.items()]
    )


def _withdrawn(state: State, name: str, pod: PodFacts) -> str:
    """Returns why a node with room on its cards gets no pod: kubelet withdraws the resources of an agent that is gone.

    Slots stand for the resources that our agent publishes as totals, which kubelet does not withdraw.
    """
    node = state.nodes()[name]
    slot = {names.SLOT} if any(card.uuid for card in node.cards) else set()
    gone = sorted(node.withdrawn & {*pod.asks, *slot})
    return f"offers no {', '.join(gone)} now, though its cards have room: is its node agent gone?" if gone else ""


def _without_node_resources(demand: Demand) -> Demand:
    """Returns the demand without CPU and memory of the node, which kube-scheduler checks."""
    return demand._replace(cpu_milli=0, memory_mib=0)


def _rooms(state: State, pod: PodFacts) -> tuple[dict[str, Room], dict[str, str]]:
    """Returns the rooms of nodes that publish what the pod requests, and for other nodes what they do not publish.

    kube-scheduler counts resources by name before it calls the extender; it is configured not to count resources that
    no node publishes.
    """
    counted = {resource for node in state.nodes().values() for resource in node.published & pod.asks.keys()}
    rooms, unpublished = {}, {}
    for name, node in state.nodes().items():
        room, missing = state.room(name), sorted(counted - node.published)
        if missing and node.cards:
            unpublished[name] = f"does not publish {', '.join(missing)}"
        elif room is not None:
            rooms[name] = room
    return rooms, unpublished


def _ranked(
    rooms: Mapping[str, Room], fitting: list[str], demand: Demand, policy: PackingPolicy
) -> list[tuple[str, int]]:
    node_scores = scores([rank_of(rooms[name], demand, policy) for name in fitting], fitting)
    return sorted(zip(fitting, node_scores, strict=True), key=lambda item: (-item[1], item[0]))


def _cards(state: State, name: str, demand: Demand) -> tuple[CardFit, ...]:
    usage = state.usage(name)
    if usage is None:
        return ()
    need = _unplaced_need(usage.room, demand)
    holders = _titles(state, name, usage)
    return tuple(_card(usage.room, at, tuple(holders.get(at, ())), need, demand) for at in range(len(usage.room.cards)))


def _titles(state: State, name: str, usage: NodeUsage) -> dict[int, list[str]]:
    """Returns the pods on each used card."""
    found: dict[int, list[str]] = {}
    for facts in sorted(state.pods_on(name), key=lambda facts: facts.title):
        for at in usage.shares[facts.uid].uses if facts.uid in usage.shares else ():
            found.setdefault(at, []).append(facts.title)
    return found


def _unplaced_need(room: Room, demand: Demand) -> Need:
    """Returns the need of the container that does not fit; of the first one where each fits alone."""
    alone = (need for need in demand.needs if not fits(room, demand._replace(needs=(need,))))
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
        "" if why is None else _card_reason(why, card, left.mode, mode_of(need.claim, room.slices)),
    )


_DIVIDED: Final = (CardMode.FREE, CardMode.SHARED)
"""Modes in which amounts of cores and memory are free."""


_ALL_TAKEN: Final = {
    CardMode.EXCLUSIVE: "not wholly free",
    CardMode.HALVES: "both halves are taken",
    CardMode.SLICES: "no time slice is left",
}


def _card_reason(why: Reason, card: Card, mode: CardMode, wanted: CardMode) -> str:
    match why:
        case Reason.NOT_WANTED:
            return "not among the requested cards"
        case Reason.OUT_OF_ORDER:
            return card.why_not
        case Reason.NOT_HELD:
            return "shares of it are not held"
        case Reason.LOCKED:
            return f"in use in another way ({mode})"
        case Reason.TOO_FEW | Reason.TOO_FEW_SLICES:
            return _ALL_TAKEN[wanted]
        case Reason.MEMORY if card.memory_mib is None:
            return "its memory is unknown"
    return str(why)


# --- the nearest node ---------------------------------------------------------------------------------------

_MAX_TRIED: Final = 100
"""Nodes that are searched for victims, those with the fewest pods on a card first: each takes milliseconds."""

_ANY_PRIORITY: Final = 2**31
"""Higher than any priority, so that all pods may be evicted."""


def fewest_evictions(
    state: State, pod: PodFacts, among: Iterable[str], limits: QuotaLimits = UNLIMITED
) -> NodeEvictions | None:
    """Returns the fewest evictions of lower priority on the nodes `among`; None if none is needed or none helps."""
    demand, (rooms, _) = _without_node_resources(pod.demand), _rooms(state, pod)
    allowed = sorted((rooms.keys() & set(among)) - _closed(state, rooms, demand, limits).keys())
    if any(fits(rooms[name], demand) for name in allowed):
        return None
    return _nearest(state, demand, allowed, pod.priority)


def _nearest(state: State, demand: Demand, refused: Iterable[str], priority: int) -> NodeEvictions | None:
    """Returns the fewest evictions, and of equally few those of the lowest priorities."""
    evictable = {name: pods for name in refused if (pods := of_lower_priority(priority, state.pods_on(name)))}
    candidates = sorted(evictable, key=lambda name: (_fewest_holders(state, name, demand), name))[:_MAX_TRIED]
    found: list[NodeEvictions] = []
    for name in candidates:
        victims = fewest_victims(state.nodes()[name], state.pods_on(name), evictable[name], demand)
        if victims:
            found.append(_evictions(name, [each for each in evictable[name] if each.uid in victims]))
        if victims and len(victims) == 1:
            break
    return min(found, key=lambda each: (len(each.pods), [victim.priority for victim in each.pods]), default=None)


def _fewest_holders(state: State, name: str, demand: Demand) -> int:
    """Returns how many pods use the least used cards: an upper bound of the evictions, if all of them are evictable."""
    usage = state.usage(name)
    if usage is None:
        return 0
    using = Counter(at for share in usage.shares.values() for at in share.uses)
    holders = sorted(using[at] for at in usage.room.usable)
    return sum(holders[: max(need.claim.cards for need in demand.needs)])


def _evictions(node: str, victims: list[PodFacts]) -> NodeEvictions:
    pods = [Victim(each.title, each.priority) for each in victims]
    return NodeEvictions(node, tuple(sorted(pods, key=lambda victim: (victim.priority, victim.pod))))
