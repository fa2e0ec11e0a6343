"""Makes the grant of one slot: the containers that it may be, their cards and limits, and the edits for the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from halfcard.cards import Card, Node
from halfcard.placing.demand import ContainerStage
from halfcard.placing.layouts import Layout
from halfcard.placing.pod_facts import PodFacts
from halfcard.pod.stored_pod import StoredPod

from ..inject.card_files import CardEdits
from ..inject.cdi import Edits, with_limits
from ..options import AgentOptions
from .assignment import cards_of
from .container_identity import StartingContainer, asks_of, candidates
from .container_limits import VERSION, ContainerLimits, as_variables, burst_of, card_limits


class PlacedContainers(NamedTuple):
    """A pod and where it lies."""

    pod: StoredPod
    facts: PodFacts
    node: Node
    layout: Layout


class SlotGrant(NamedTuple):
    cards: tuple[Card, ...]
    limits: ContainerLimits
    variables: dict[str, str]
    files: CardEdits

    def edits(self, limits_file: Path) -> Edits:
        return with_limits(self.files.edits, self.variables, limits_file)


def gift(
    laid: PlacedContainers, who: StartingContainer, agreed: AgentOptions, files: Callable[[Sequence[Card]], CardEdits]
) -> SlotGrant:
    containers = candidates(asks_of(laid.pod, who.resource), who.listed, len(who.ids))
    cards = cards_of(laid.facts, laid.layout, laid.node, containers)
    limits = _limits(laid, containers, cards, agreed)
    pod_mib = _pod_mib(laid.facts, limits.dialect)
    variables = as_variables(limits, cards, pod_mib, agreed.dealings.aliyun_unit_mib)
    return SlotGrant(cards, limits, variables, files(cards))


def _limits(
    laid: PlacedContainers, containers: tuple[str, ...], cards: Sequence[Card], agreed: AgentOptions
) -> ContainerLimits:
    facts = laid.facts
    needs = zip(facts.containers, facts.demand.needs, strict=True)
    claims = [need.claim for name, need in needs if name in containers]
    dialect = claims[0].dialect
    burst = burst_of(laid.pod.annotations, dialect, agreed.dialects)
    limits = card_limits(cards, claims, laid.node.slices, burst)
    return ContainerLimits(VERSION, facts.namespace, facts.name, facts.uid, containers, dialect, limits)


def _pod_mib(facts: PodFacts, dialect: str) -> int:
    """Sums the containers that run together, like gpushare."""
    needs = [need for need in facts.demand.needs if need.stage is ContainerStage.APP and need.claim.dialect == dialect]
    return sum([need.claim.memory_mib or 0 for need in needs])
