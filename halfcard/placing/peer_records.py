"""The annotations that other systems' agents read, and that their schedulers wrote: which cards a pod was given.

All readers take the node that the pod is bound to; None where their system wrote nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from .. import names
from ..cards import Card
from ..pod.stored_pod import MOST_ANNOTATED
from .demand import ContainerStage, Need
from .placed_pod import NOT_UNDERSTOOD, Named, PlacedPod

# --- gpu-manager: indices per container, under the domain of its resources -------------------------------------------

_PREDICATE_NODE: Final = names.PREDICATE_NODE_SUFFIX
_GIVEN: Final = "true"


def write_predicate(placed: PlacedPod, wanted: list[int], prefix: str, now_ns: int) -> dict[str, str]:
    if not wanted:
        return {}
    return {
        **{_predicate_key(prefix, placed.needs[number]): _indices(placed.cards(number)) for number in wanted},
        prefix + _PREDICATE_NODE: placed.node.name,
        prefix + names.PREDICATE_TIME_SUFFIX: str(now_ns),
        prefix + names.GPU_ASSIGNED_SUFFIX: "false",
    }


def _predicate_key(prefix: str, need: Need) -> str:
    return f"{prefix}{names.PREDICATE_CARDS_SUFFIX}{need.order}"


def read_predicate(
    annotations: Mapping[str, str], node: str, _containers: Sequence[str], needs: Sequence[Need]
) -> Named | None:
    domains = _domains(annotations, _PREDICATE_NODE)
    if not domains:
        return None
    if annotations[domains[0] + _PREDICATE_NODE] != node:
        return NOT_UNDERSTOOD
    return _predicted(annotations, domains[0], needs)


def read_assigned(
    annotations: Mapping[str, str], node: str, _containers: Sequence[str], needs: Sequence[Need]
) -> Named | None:
    """Reads which cards gpu-manager's agent has assigned.

    It chooses whole cards itself, whatever a scheduler recorded, and writes this annotation also without a record.
    """
    for domain in _domains(annotations, names.GPU_ASSIGNED_SUFFIX):
        is_given = annotations[domain + names.GPU_ASSIGNED_SUFFIX] == _GIVEN
        if is_given and annotations.get(domain + _PREDICATE_NODE, node) == node:
            named = _predicted(annotations, domain, needs)
            return named if named and any(named) else None
    return None


def _domains(annotations: Mapping[str, str], suffix: str) -> list[str]:
    return [key.removesuffix(suffix) for key in annotations if key.endswith(suffix)]


def _predicted(annotations: Mapping[str, str], domain: str, needs: Sequence[Need]) -> Named | None:
    """gpu-manager knows nothing of init containers: a pod with a claim there has no record of its."""
    if any(need.stage is not ContainerStage.APP for need in needs):
        return None
    return tuple([_listed(annotations.get(_predicate_key(domain, need))) for need in needs])


# --- gpushare: one index for the whole pod ---------------------------------------------------------------------------


def write_aliyun(placed: PlacedPod, now_ns: int) -> dict[str, str]:
    """Writes gpushare's record. Its agent knows one card for each pod: several cards are in our own record only."""
    wanted = placed.apps("aliyun")
    cards = {at for number in wanted for at in placed.layout[number]}
    if len(cards) != 1:
        return {}
    card = placed.node.cards[cards.pop()]
    asked = sum(placed.needs[number].claim.memory_mib or 0 for number in wanted)
    return {
        names.ALIYUN_INDEX: str(card.index),
        names.ALIYUN_CARD_TOTAL: str((card.memory_mib or 0) // placed.aliyun_unit_mib),
        names.ALIYUN_POD_TOTAL: str(asked // placed.aliyun_unit_mib),
        names.ALIYUN_ASSIGNED: "false",
        names.ALIYUN_ASSUME_TIME: str(now_ns),
    }


def read_aliyun(
    annotations: Mapping[str, str], _node: str, _containers: Sequence[str], needs: Sequence[Need]
) -> Named | None:
    return _per_pod(annotations.get(names.ALIYUN_INDEX), needs, "aliyun")


# --- Volcano: a list of indices for the whole pod --------------------------------------------------------------------


def write_volcano(placed: PlacedPod, now_ns: int) -> dict[str, str]:
    wanted = placed.apps("volcano")
    if len(wanted) != 1:
        return {}
    return {
        names.VOLCANO_INDEX: _indices(placed.cards(wanted[0])),
        names.VOLCANO_TIME: str(now_ns),
    }


def read_volcano(
    annotations: Mapping[str, str], _node: str, _containers: Sequence[str], needs: Sequence[Need]
) -> Named | None:
    return _per_pod(annotations.get(names.VOLCANO_INDEX), needs, "volcano")


# --- what their records have in common -------------------------------------------------------------------------------


def _per_pod(text: str | None, needs: Sequence[Need], dialect: str) -> Named | None:
    """One list for all containers that speak to this system, and nothing about the others."""
    if text is None:
        return None
    return tuple([_listed(text) if need.claim.dialect == dialect else () for need in needs])


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(",")) if text and len(text) <= MOST_ANNOTATED else ()


def _indices(cards: Iterable[Card]) -> str:
    return ",".join(str(card.index) for card in cards)
