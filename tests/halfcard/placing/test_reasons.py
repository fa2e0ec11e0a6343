from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings

from halfcard import names
from halfcard.placing.card_usage import is_closed, is_offered, mode_of, take, use_of
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import fits
from halfcard.placing.reasons import Reason, text, why_not, why_not_card
from halfcard.placing.room import Room, empty_room
from halfcard.pod.card_preferences import NOTHING_WANTED, CardPreferences, read_preferences
from tests.builders import pod

from .examples import CARD_MIB, Asking, askings, demand, demand_of, node, room, rooms

FULL: Final = (0, {"gpu": 1})
BUSY: Final = room(3, CARD_MIB, (0, {"core": 80, "memory": 4}), (1, {"core": 75, "memory": 80}), (2, {"gpu": 1}))
CORDONED: Final = empty_room(replace(node(1), cards=(replace(node(1).cards[0], why_not="cordoned"),)))
NOT_HELD: Final = empty_room(replace(node(1), cards=(replace(node(1).cards[0], not_held="no libcuda"),)))

REASONS: Final[dict[str, tuple[Room, Demand, Reason, str]]] = {
    "no cards": (room(0), demand(gpu=1), Reason.NO_CARDS, "no GPU known to Halfcard"),
    "none that is wanted": (
        room(2),
        Demand(demand(gpu=1).needs, read_preferences({names.ASK_MODEL: "H100"})),
        Reason.NOT_WANTED,
        "no card is what the pod asks for (ask.halfcard.dev/model=H100)",
    ),
    "cordoned": (CORDONED, demand(gpu=1), Reason.OUT_OF_ORDER, "every card is out of order or cordoned"),
    "locked to something else": (
        room(1, CARD_MIB, (0, {"sgpu": 1})),
        demand(core=30, memory=1),
        Reason.LOCKED,
        "every card is in use in another way",
    ),
    "cores": (BUSY, demand(core=30, memory=1), Reason.CORES, "no card has 30 % free"),
    "memory": (BUSY, demand(core=10, memory=84), Reason.MEMORY, "no card has 21504 MiB free"),
    "cores here, memory there": (
        BUSY,
        demand(core=25, memory=30),
        Reason.AT_ONCE,
        "no card has 25 % and 7680 MiB free at once",
    ),
    "all memory": (BUSY, demand(core=1), Reason.MEMORY, "no card has all its memory free"),
    "part of the memory": (
        room(1, CARD_MIB, (0, {"gpu": 1, "gpumem_percentage": 60})),
        demand(gpu=1, gpumem_percentage=50),
        Reason.MEMORY,
        "no card has 50 % of its memory free",
    ),
    "memory of a card of unknown size": (
        room(1, None),
        demand(core=30, memory=20),
        Reason.MEMORY,
        "no card has 5120 MiB free",
    ),
    "a whole card": (room(1, CARD_MIB, FULL), demand(gpu=1), Reason.TOO_FEW, "no card is wholly free"),
    "whole cards": (room(3, CARD_MIB, FULL), demand(core=300), Reason.TOO_FEW, "fewer than 3 cards are wholly free"),
    "a half": (room(1, CARD_MIB, FULL), demand(sgpu=1), Reason.TOO_FEW, "no card has a half free"),
    "halves": (
        room(2, CARD_MIB, FULL),
        demand(sgpu=2),
        Reason.TOO_FEW,
        "fewer than 2 cards have a half free",
    ),
    "slices": (
        room(1, CARD_MIB, slices=names.NVIDIA_GPU_SHARED, replicas=4),
        demand(gpu_shared=5),
        Reason.TOO_FEW_SLICES,
        "fewer than 5 time slices are free",
    ),
    "slices that look like cards": (
        room(1, CARD_MIB, FULL, slices=names.NVIDIA_GPU, replicas=4),
        demand(gpu=4),
        Reason.TOO_FEW_SLICES,
        "fewer than 4 time slices are free",
    ),
    "slices where none are sold": (
        room(2),
        demand(gpu_shared=1),
        Reason.NOT_WANTED,
        "no card is what the pod asks for (nvidia.com/gpu.shared)",
    ),
    "slices where they are sold under the cards' own name": (
        room(2, CARD_MIB, slices=names.NVIDIA_GPU, replicas=4),
        Demand(demand(gpu_shared=1).needs, CardPreferences(models=("a10",), uuids=("GPU-0",), text="model=A10")),
        Reason.NOT_WANTED,
        "no card is what the pod asks for (model=A10, nvidia.com/gpu.shared)",
    ),
    "a share where shares are not held": (
        NOT_HELD,
        demand(core=30, memory=1),
        Reason.NOT_HELD,
        "isolation is enforce, and no card can hold containers to their share",
    ),
    "half a card where shares are not held": (
        NOT_HELD,
        demand(sgpu=1),
        Reason.NOT_HELD,
        "isolation is enforce, and no card can hold containers to their share",
    ),
    "shares of several cards": (
        room(1),
        demand(gpu=2, gpumem=3000, gpucores=30),
        Reason.TOO_FEW,
        "fewer than 2 cards have 30 % and 3000 MiB free",
    ),
    "the second container": (
        room(1, CARD_MIB, (0, {"core": 60, "memory": 1})),
        demand_of(pod().asks(core=10, memory=1).asks(core=50, memory=1)),
        Reason.CORES,
        "too few cores",
    ),
    "each container, but not all": (
        room(1),
        demand_of(pod().asks(core=60, memory=1).asks(core=60, memory=1)),
        Reason.TOGETHER,
        "no room for all its containers together",
    ),
}


@pytest.mark.parametrize(("found", "asked", "why", "sentence"), REASONS.values(), ids=REASONS)
def test_a_node_that_cannot_take_a_pod_has_one_reason(found: Room, asked: Demand, why: Reason, sentence: str) -> None:
    assert not fits(found, asked)
    assert why_not(found, asked) is why
    assert text(why, asked) == sentence


def test_there_are_eleven_reasons() -> None:
    """kube-scheduler writes each into the pod."""
    assert len(Reason) == 11


CARD_REASONS: Final[dict[str, tuple[int, dict[str, Any], CardPreferences, Reason | None]]] = {
    "it would do": (0, {"core": 20, "memory": 1}, NOTHING_WANTED, None),
    "not wanted": (0, {"core": 20, "memory": 1}, CardPreferences(uuids=("GPU-1",)), Reason.NOT_WANTED),
    "cores": (0, {"core": 21, "memory": 1}, NOTHING_WANTED, Reason.CORES),
    "memory": (1, {"core": 20, "memory": 9}, NOTHING_WANTED, Reason.MEMORY),
    "both": (1, {"core": 30, "memory": 9}, NOTHING_WANTED, Reason.AT_ONCE),
    "locked": (2, {"core": 20, "memory": 1}, NOTHING_WANTED, Reason.LOCKED),
    "in use": (0, {"gpu": 1}, NOTHING_WANTED, Reason.TOO_FEW),
}


@pytest.mark.parametrize(("at", "words", "wanted", "why"), CARD_REASONS.values(), ids=CARD_REASONS)
def test_each_card_has_its_own_reason(
    at: int, words: dict[str, Any], wanted: CardPreferences, why: Reason | None
) -> None:
    asked = Demand(demand(**words).needs, wanted)
    assert why_not_card(BUSY, at, asked.needs[0], asked) is why


@settings(max_examples=200)
@given(rooms(), askings(most=3))
def test_every_refusal_has_a_reason_without_numbers_of_the_node(found: Room, asking: Asking) -> None:
    if fits(found, asking.demand):
        return
    why = why_not(found, asking.demand)
    elsewhere = Room(tuple(replace(card, memory_mib=77777) for card in found.cards), found.left, found.slices)
    assert text(why, asking.demand) == text(Reason(str(why)), asking.demand)
    assert "77777" not in text(why_not(elsewhere, asking.demand), asking.demand)
    asked_for = {str(number) for need in asking.demand.needs for number in numbers_of(need.claim)}
    assert set(re.findall(r"\d+", text(why, asking.demand))) <= asked_for | {"0"}
    if len(asking.demand.needs) == 1:
        assert why is not Reason.TOGETHER


def numbers_of(claim: Any) -> tuple[int | None, ...]:
    return claim.cards, claim.cores_pct, claim.memory_mib, claim.memory_pct


@settings(max_examples=200)
@given(rooms(), askings(most=1))
def test_a_card_has_a_reason_exactly_if_it_does_not_fit(found: Room, asking: Asking) -> None:
    (need,) = asking.demand.needs
    for at, card in enumerate(found.cards):
        fits = take(card, found.left[at], use_of(need.claim, card, found.slices)) is not None
        fits = fits and is_offered(need.claim, found.slices)
        would_do = fits and not is_closed(card, mode_of(need.claim, found.slices)) and asking.demand.wanted.allows(card)
        assert (why_not_card(found, at, need, asking.demand) is None) is would_do
