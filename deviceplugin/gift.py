"""What one slot is: the containers that it may be, their cards and limits, and how the runtime is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from halfcard.cards import Card, Node
from halfcard.placing.demand import Stage
from halfcard.placing.facts import Facts
from halfcard.placing.layouts import Layout
from halfcard.stored import StoredPod

from .cdi import Edits, with_limits
from .decision import cards_of
from .identity import Starting, asks_of, candidates
from .limits import VERSION, Limits, as_variables, burst_of, card_limits
from .nvidia_cdi import CardEdits
from .place import Agreed


class Laid(NamedTuple):
    """A pod and where it lies."""

    pod: StoredPod
    facts: Facts
    node: Node
    layout: Layout


class Gift(NamedTuple):
    cards: tuple[Card, ...]
    limits: Limits
    variables: dict[str, str]
    files: CardEdits

    def edits(self, limits_file: Path) -> Edits:
        return with_limits(self.files.edits, self.variables, limits_file)


def gift(laid: Laid, who: Starting, agreed: Agreed, files: Callable[[Sequence[Card]], CardEdits]) -> Gift:
    containers = candidates(asks_of(laid.pod, who.resource), who.listed, len(who.ids))
    cards = cards_of(laid.facts, laid.layout, laid.node, containers)
    limits = _limits(laid, containers, cards, agreed)
    pod_mib = _pod_mib(laid.facts, limits.dialect)
    variables = as_variables(limits, cards, pod_mib, agreed.dealings.aliyun_unit_mib)
    return Gift(cards, limits, variables, files(cards))


def _limits(laid: Laid, containers: tuple[str, ...], cards: Sequence[Card], agreed: Agreed) -> Limits:
    facts = laid.facts
    needs = zip(facts.containers, facts.demand.needs, strict=True)
    claims = [need.claim for name, need in needs if name in containers]
    dialect = claims[0].dialect
    burst = burst_of(laid.pod.annotations, dialect, agreed.dialects)
    limits = card_limits(cards, claims, laid.node.slices, burst)
    return Limits(VERSION, facts.namespace, facts.name, facts.uid, containers, dialect, limits)


def _pod_mib(facts: Facts, dialect: str) -> int:
    """Of the containers that run together, as gpushare counts."""
    needs = [need for need in facts.demand.needs if need.stage is Stage.APP and need.claim.dialect == dialect]
    return sum([need.claim.memory_mib or 0 for need in needs])
