from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from extender.packing.policies.fullness import fullness, used
from halfcard.placing.card_usage import CardMode, CardRoom

from .rooms import CARD_MIB, room

LEFT: Final[dict[str, tuple[CardRoom, int, float, int]]] = {
    "a free card": (CardRoom(CardMode.FREE, 100, CARD_MIB, 0), 100, 0, 0),
    "a whole card that is taken": (CardRoom(CardMode.EXCLUSIVE, 0, 0, 0), 0, 0, 0),
    "cores, where they are shorter": (CardRoom(CardMode.SHARED, 30, CARD_MIB, 0), 30, 0, 1),
    "memory, where it is shorter": (CardRoom(CardMode.SHARED, 70, CARD_MIB // 4, 0), 25, 0, 1),
    "a card whose memory alone is used": (CardRoom(CardMode.SHARED, 100, CARD_MIB // 2, 0), 50, 0, 1),
    "a card with one half left": (CardRoom(CardMode.HALVES, 100, CARD_MIB, 1), 0, 0.5, 1),
    "a card with three slices of four left": (CardRoom(CardMode.SLICES, 100, CARD_MIB, 3), 0, 0.75, 1),
}


@pytest.mark.parametrize("name", LEFT)
def test_the_free_amount_of_a_card_is_the_smaller_of_cores_and_memory(name: str) -> None:
    left, amount, parts, divided = LEFT[name]
    assert fullness(room(left)) == ([amount], parts, divided)
    assert used(room(left)) == [1 - amount / 100 - parts]


def test_a_card_that_is_out_of_order_has_no_free_amount() -> None:
    whole = room(100, 40)
    broken = replace(whole, cards=tuple([replace(card, why_not="cordoned") for card in whole.cards]))
    assert fullness(broken).amounts == [0, 0]


def test_cores_alone_count_on_a_card_of_unknown_memory() -> None:
    known = room(40)
    unknown = replace(
        known, cards=(replace(known.cards[0], memory_mib=None),), left=(CardRoom(CardMode.SHARED, 40, 0, 0),)
    )
    assert fullness(unknown).amounts == [40]
