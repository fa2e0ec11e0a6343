"""The text of an explanation: what the scheduler said, then what Halfcard says of each node and card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extender.explain.bound import BoundPod, ContainerCards
from extender.explain.explanation import Explanation, PodState
from extender.explain.pending import CardFit, NodeEvictions, NodeFit, PendingPod
from extender.explain.scheduling import Scheduling
from extender.explain.summary import PendingSummary
from halfcard.placing.card_usage import CardMode
from halfcard.placing.records import BY_AGENT

from .shares import share
from .terminal import Colour, Screen

_MOST_FITTING: Final = 5
_MOST_REASONS: Final = 10
_MOST_NAMES: Final = 3
_MOST_CARDS: Final = 16
_MOST_PODS: Final = 8
"""The most pods in the text, which fill a screen; the JSON has all of them."""


_UNREAD: Final = (
    "You may not list nodes and the pods of all namespaces, so single nodes and cards are left out: the ClusterRole"
    " halfcard-inspect allows that."
)


def print_explanation(screen: Screen, found: Explanation, *, is_planned: bool = False) -> None:
    screen.wrapped(_planned(found) if is_planned else _headline(found), indent="", hanging="  ", colour=Colour.BOLD)
    for container, asks in found.asks.items():
        screen.line(f"  {container}: {asks}")
        _print_cards_held(screen, _grant(found, container))
    if found.wants:
        screen.wrapped(f"it prefers {found.wants}", indent="  ", hanging="  ")
    if found.trouble:
        screen.wrapped(found.trouble, indent="", hanging="  ", colour=Colour.RED)
    if found.scheduling is not None:
        _print_scheduling(screen, found.scheduling)
    for each in found.events:
        screen.wrapped(f"Halfcard says {each.reason}: {each.message}", indent="", hanging="  ", colour=Colour.YELLOW)
    if found.prospects is not None:
        _print_prospects(screen, found.prospects)
    if found.nodes_unread and found.standing in (PodState.PENDING, PodState.BOUND):
        screen.wrapped(_UNREAD, indent="", hanging="  ", colour=Colour.DIM)


def print_summaries(screen: Screen, pending: Sequence[PendingSummary]) -> None:
    if not pending:
        screen.line(screen.paint("No pod that requests cards is pending.", Colour.GREEN))
    for each in pending:
        screen.wrapped(f"{each.pod}: {each.why}", indent="", hanging="  ")


def _print_scheduling(screen: Screen, scheduling: Scheduling) -> None:
    said = [] if scheduling.report is None else [f"{scheduling.program} says: {scheduling.report.message}"]
    for sentence in filter(None, (*scheduling.obstacles, *said, scheduling.remark)):
        screen.wrapped(sentence, indent="", hanging="  ", colour=Colour.YELLOW)


def _headline(found: Explanation) -> str:
    match found.standing:
        case PodState.NO_CARDS:
            pending = "is pending and " if found.scheduling is not None else ""
            return f"Pod {found.pod} {pending}requests no card: for Halfcard it may run anywhere."
        case PodState.OVER:
            return f"Pod {found.pod} has ended and uses no card."
        case PodState.BOUND if found.whereabouts is not None:
            return f"Pod {found.pod} is on node {found.whereabouts.node}, {_by_whom(found, found.whereabouts)}."
    if found.trouble:
        return f"Pod {found.pod} is pending, and can never fit on any node:"
    return f"Pod {found.pod} is pending (priority {found.priority}). It requests:"


def _planned(found: Explanation) -> str:
    if found.standing is PodState.NO_CARDS:
        return f"Pod {found.pod} would be stored and request no card: for Halfcard it may run anywhere."
    if found.trouble:
        return f"Pod {found.pod} would be stored, and can never fit on any node:"
    return f"Pod {found.pod} would be stored (priority {found.priority}). It would request:"


def _by_whom(found: Explanation, where: BoundPod) -> str:
    if not where.grants and not where.recorded_by:
        return "and no card is recorded for it" if found.nodes_unread else "and uses none of its cards"
    if not where.recorded_by:
        return "its cards are not recorded and are guessed"
    why = ", because its scheduler did not call the extender" if where.recorded_by == BY_AGENT else ""
    return f"its cards recorded by {where.recorded_by}" + (f" at {where.since}" if where.since else "") + why


# --- pending ---------------------------------------------------------------------------------------------------------


def _print_prospects(screen: Screen, prospects: PendingPod) -> None:
    fitting = [node for node in prospects.nodes if node.fits]
    refusing = [node for node in prospects.nodes if not node.fits]
    if fitting:
        _print_fitting(screen, fitting, len(prospects.nodes))
    if refusing:
        screen.line(screen.paint(f"It fits on {'no node' if not fitting else 'no other'}:", Colour.YELLOW))
        _print_reasons(screen, refusing)
    if not fitting:
        _print_nearest(screen, prospects)
        _print_cards(screen, _to_show(prospects, refusing))


def _print_fitting(screen: Screen, fitting: Sequence[NodeFit], nodes: int) -> None:
    words = f"Halfcard has no objection: it fits on {len(fitting)} of {_counted(nodes, 'node')}, by score:"
    screen.line(screen.paint(words, Colour.GREEN))
    screen.table([(str(node.score), node.name) for node in fitting[:_MOST_FITTING]], right=(0,), indent="  ")
    _print_rest(screen, len(fitting) - _MOST_FITTING, "node")


def _print_reasons(screen: Screen, refusing: Sequence[NodeFit]) -> None:
    """Equal reasons once, the most frequent first."""
    grouped: dict[str, list[str]] = {}
    for node in refusing:
        grouped.setdefault(node.reason, []).append(node.name)
    ordered = sorted(grouped.items(), key=lambda item: -len(item[1]))
    for reason, nodes in ordered[:_MOST_REASONS]:
        shown = ", ".join(nodes[:_MOST_NAMES]) + (", …" if len(nodes) > _MOST_NAMES else "")
        screen.wrapped(f"{_counted(len(nodes), 'node')}: {reason} ({shown})", indent="  ", hanging="  ")


def _print_nearest(screen: Screen, prospects: PendingPod) -> None:
    lower, anybody = prospects.nearest, prospects.nearest_of_any_priority
    if lower is not None:
        _print_departure(screen, lower, "of lower priority")
    else:
        screen.line("Evicting pods of lower priority is not enough on any node.")
    if anybody is not None and (lower is None or len(anybody.pods) < len(lower.pods)):
        _print_departure(screen, anybody, "of any priority")


def _print_departure(screen: Screen, departure: NodeEvictions, whose: str) -> None:
    screen.line(f"Nearest: {departure.node}, if {_counted(len(departure.pods), 'pod')} {whose} ended:")
    for victim in departure.pods[:_MOST_PODS]:
        screen.line(f"  {victim.pod} (priority {victim.priority})")
    _print_rest(screen, len(departure.pods) - _MOST_PODS, "pod")


def _to_show(prospects: PendingPod, refusing: Sequence[NodeFit]) -> list[NodeFit]:
    """The nearest node first, then as many others as a screen takes; a node without cards has none to show."""
    near = [each.node for each in (prospects.nearest, prospects.nearest_of_any_priority) if each is not None]
    ordered = sorted((node for node in refusing if node.cards), key=lambda node: node.name not in near)
    shown: list[NodeFit] = []
    cards = 0
    for node in ordered:
        cards += len(node.cards)
        if shown and cards > _MOST_CARDS:
            break
        shown.append(node)
    return shown


def _print_cards(screen: Screen, nodes: Sequence[NodeFit]) -> None:
    for node in nodes:
        screen.line(screen.paint(f"{node.name}:", Colour.BOLD))
        screen.table([_card(card) for card in node.cards[:_MOST_CARDS]], indent="  ")
        _print_rest(screen, len(node.cards) - _MOST_CARDS, "card")


def _card(card: CardFit) -> tuple[str, ...]:
    return (
        f"card {card.index}",
        str(card.mode),
        _free(card),
        _counted(len(card.pods), "pod") if card.pods else "",
        card.reason or "would do",
    )


def _free(card: CardFit) -> str:
    match card.mode:
        case CardMode.HALVES:
            return f"{card.parts_free} of 2 halves free"
        case CardMode.SLICES:
            return f"{_counted(card.parts_free, 'time slice')} free"
        case CardMode.EXCLUSIVE:
            return "nothing free"
    memory = "" if card.memory_mib_free is None else f" and {card.memory_mib_free} MiB"
    return f"{card.cores_free} %{memory} free"


# --- bound -----------------------------------------------------------------------------------------------------------


def _grant(found: Explanation, container: str) -> ContainerCards:
    grants = found.whereabouts.grants if found.whereabouts is not None else ()
    return next((grant for grant in grants if grant.container == container), ContainerCards(container, ()))


def _print_cards_held(screen: Screen, grant: ContainerCards) -> None:
    if grant.held:
        screen.wrapped(grant.held, indent="    ", hanging="      ")
    for card in grant.cards:
        name = "" if card.name == str(card.index) else card.name
        screen.line("    " + "  ".join(filter(None, (f"card {card.index}", card.model, name, str(card.mode)))))
        beside = [(f"beside {each.title}", share(each)) for each in card.neighbours[:_MOST_PODS]]
        screen.table(beside, indent="      ")
        _print_rest(screen, len(card.neighbours) - _MOST_PODS, "pod")


def _print_rest(screen: Screen, left_out: int, what: str) -> None:
    if left_out > 0:
        screen.line(screen.paint(f"  … and {_counted(left_out, what)} more; -o json lists all", Colour.DIM))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
