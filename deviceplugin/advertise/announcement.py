"""Computes what the node object should say about the node's cards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from halfcard import names
from halfcard.cards import Card
from halfcard.inventory import write_inventory
from halfcard.isolation.mode import ChosenMode, IsolationMode
from halfcard.problems import clipped

_MOST_CHARS: Final = 900
_LABEL_CHARS: Final = 63
_NO_LABEL: Final = re.compile(r"[^A-Za-z0-9-_. ]")
_SHARED: Final = "-SHARED"


class Condition(NamedTuple):
    holds: bool
    reason: str
    message: str


class Announcement(NamedTuple):
    """The wanted content of the node object.

    Attributes:
        inventory: None where the cards are unknown: the last inventory stays.
        labels: in the form of NVIDIA's feature discovery; None likewise.
        capacity: totals of resources that have no device ids.
        isolation: whether shares are held; None where isolation is off.
    """

    inventory: str | None
    labels: Mapping[str, str] | None
    capacity: Mapping[str, int]
    condition: Condition
    is_made_up: bool
    isolation: Condition | None = None


def announcement(
    cards: Sequence[Card],
    capacity: Mapping[str, int],
    *,
    slices: str = "",
    is_made_up: bool = False,
    trouble: str = "",
    isolation: Condition | None = None,
) -> Announcement:
    """Returns the wanted content; `trouble` is why the driver does not answer, and known cards stay listed."""
    known = bool(cards) or not trouble
    return Announcement(
        inventory=write_inventory(cards, slices) if known else None,
        labels=_labels(cards, slices) if known else None,
        capacity=capacity,
        condition=_condition(cards, trouble),
        is_made_up=is_made_up,
        isolation=isolation,
    )


def _labels(cards: Sequence[Card], slices: str) -> dict[str, str]:
    """Returns the labels; a label describes all cards, so it is absent where they differ."""
    if not cards:
        return {}
    labels = {names.NVIDIA_LABEL_COUNT: str(len(cards))}
    for label, values in (
        (names.NVIDIA_LABEL_MEMORY, {str(card.memory_mib or "") for card in cards}),
        (names.NVIDIA_LABEL_PRODUCT, {_product(card.model, slices) for card in cards}),
        (names.NVIDIA_LABEL_REPLICAS, {str(card.replicas) for card in cards}),
    ):
        if len(values) == 1 and (value := values.pop()):
            labels[label] = value
    return labels


def _product(model: str, slices: str) -> str:
    """Returns the product label, shortened; a suffix marks slices that are sold under the name of whole cards."""
    shared = _SHARED if slices == names.NVIDIA_GPU else ""
    name = "-".join(_NO_LABEL.sub("", model).split())[: _LABEL_CHARS - len(shared)].strip("-_.")
    return name and name + shared


def _condition(cards: Sequence[Card], trouble: str) -> Condition:
    if trouble:
        return Condition(holds=False, reason="DriverUnavailable", message=clipped(trouble, _MOST_CHARS))
    sick = [card for card in cards if card.why_not]
    if sick:
        message = "; ".join(f"{card_title(card)}: {card.why_not}" for card in sick)
        return Condition(holds=False, reason="CardsOutOfOrder", message=clipped(message, _MOST_CHARS))
    return Condition(holds=True, reason="CardsInOrder", message=f"cards in order: {len(cards)}")


_IF_NOT_HELD: Final = {
    IsolationMode.WARN: "containers of shares start, and nothing holds them",
    IsolationMode.ENFORCE: "no shares are offered, and containers of shares do not start",
}


def isolation_condition(chosen: ChosenMode, why_not: str) -> Condition | None:
    """Returns the condition; `why_not` is why nothing can be held. None where isolation is off."""
    if chosen.mode is IsolationMode.OFF:
        return None
    label = f"label {names.ISOLATION_LABEL}: {chosen.problem}; " if chosen.problem else ""
    if why_not:
        message = f"{label}{why_not}; isolation is {chosen.mode}: {_IF_NOT_HELD[chosen.mode]}"
        return Condition(holds=False, reason="SharesNotHeld", message=clipped(message, _MOST_CHARS))
    return Condition(holds=True, reason="SharesHeld", message=f"{label}containers of shares that start now are held")


def card_title(card: Card) -> str:
    return f"card {card.index}" + (f" ({card.uuid})" if card.uuid else "")
