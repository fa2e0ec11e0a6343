"""Makes the grant of one slot: the containers that it may be, their cards and limits, and the edits for the runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from halfcard.cards import Card, Node
from halfcard.claims import ContainerStage
from halfcard.placing.card_usage import CardUse
from halfcard.placing.node_usage import Share
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import name_of
from halfcard.problems import printable

from ..inject.cdi import CardEdits
from ..kubelet.messages import RefusedError
from ..options import AgentOptions
from .container_identity import StartingContainer, candidates
from .container_limits import VERSION, ContainerLimits, as_variables, burst_of, card_limits

_NAMED_CHARS: Final = 80


class PodOnCards(NamedTuple):
    """A pod and its cards on this node; the annotations hold what its owner wrote about limits."""

    facts: PodFacts
    annotations: Mapping[str, str]
    node: Node
    share: Share

    @property
    def uses(self) -> dict[str, CardUse]:
        """The peak use of each card, by the card's name."""
        return {name_of(self.node.cards[at]): use for at, use in self.share.uses.items()}


class Grant(NamedTuple):
    cards: tuple[Card, ...]
    limits: ContainerLimits
    variables: dict[str, str]
    files: CardEdits


def grant_of(
    pod: PodOnCards, container: StartingContainer, options: AgentOptions, files: Callable[[Sequence[Card]], CardEdits]
) -> Grant:
    containers = candidates(pod.facts, container)
    cards = _cards(pod, containers)
    limits = _limits(pod, containers, cards, options)
    dialect = options.dialects.by_name[limits.dialect]
    of_dialect = dialect.variables(limits.cards, cards, _pod_mib(pod.facts, dialect.name))
    return Grant(cards, limits, as_variables(limits.cards, cards) | of_dialect, files(cards))


def _cards(pod: PodOnCards, containers: Sequence[str]) -> tuple[Card, ...]:
    """Returns the cards of these indistinguishable containers; each card once, in the order of the record."""
    where = dict(zip(pod.facts.containers, pod.share.layout, strict=True))
    found = {where[name] for name in containers if name in where}
    if not found:
        raise RefusedError(
            f"pod {pod.facts.title}: {_listed(containers)} requests no card under a resource name that this node knows"
        )
    if len({frozenset(cards) for cards in found}) > 1:
        raise RefusedError(
            f"pod {pod.facts.title}: kubelet does not tell which of {_listed(containers)} starts, and their cards "
            "differ; let the init container request another amount than the containers after it"
        )
    return tuple([pod.node.cards[at] for at in dict.fromkeys(found.pop())])


def _listed(containers: Sequence[str]) -> str:
    return printable(", ".join(containers) or "none of its containers", _NAMED_CHARS)


def _limits(
    pod: PodOnCards, containers: tuple[str, ...], cards: Sequence[Card], options: AgentOptions
) -> ContainerLimits:
    facts = pod.facts
    needs = zip(facts.containers, facts.demand.needs, strict=True)
    claims = [need.claim for name, need in needs if name in containers]
    dialect = claims[0].dialect
    burst = burst_of(pod.annotations, options.dialects.by_name[dialect])
    limits = card_limits(cards, claims, pod.node.slices, burst)
    return ContainerLimits(VERSION, facts.namespace, facts.name, facts.uid, containers, dialect, limits)


def _pod_mib(facts: PodFacts, dialect: str) -> int:
    """Sums the containers that run together, like gpushare."""
    needs = [need for need in facts.demand.needs if need.stage is ContainerStage.APP and need.claim.dialect == dialect]
    return sum([need.claim.memory_mib or 0 for need in needs])
