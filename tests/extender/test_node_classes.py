"""Rooms that are alike are judged alike."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from extender.node_classes import class_of, names_single_cards
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import fits
from halfcard.placing.reasons import why_not, why_not_where
from halfcard.placing.room import Room
from tests.halfcard.placing.examples import demands, room, rooms


@given(rooms(), demands)
def test_a_room_and_its_class_have_the_same_fit_and_reason(found: Room, demand: Demand) -> None:
    assume(not names_single_cards(demand))
    alike = class_of(found).room
    assert fits(found, demand) == fits(alike, demand)
    if not fits(found, demand):
        assert why_not(found, demand) == why_not(alike, demand)
        assert why_not(found, demand) == why_not_where(demand, found.slices)(found)


@given(rooms(), st.randoms(use_true_random=False))
def test_order_and_names_of_cards_do_not_change_the_class(found: Room, random: st.DataObject) -> None:
    pairs = [*zip(found.cards, found.left, strict=True)]
    random.shuffle(pairs)  # type: ignore[attr-defined]
    cards = tuple(replace(card, index=at, uuid=f"GPU-x{at}") for at, (card, _) in enumerate(pairs))
    other = Room(cards, tuple(left for _, left in pairs), found.slices, cpu_milli=7, memory_mib=9)
    assert class_of(found) is class_of(other)


def test_rooms_with_other_cards_or_less_free_have_another_class() -> None:
    whole = room(2)
    others = [room(3), room(2, 4096), room(2, None), room(2, replicas=2), room(2, slices="nvidia.com/gpu")]
    others.append(replace(whole, cards=tuple(replace(card, not_held="no libcuda") for card in whole.cards)))
    others.append(room(2, whole.cards[0].memory_mib, (0, {"core": "10", "memory": "1"})))
    assert all(class_of(other) is not class_of(whole) for other in others)
