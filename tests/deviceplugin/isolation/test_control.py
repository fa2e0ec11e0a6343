"""What the control file of a container says of its cards."""

from __future__ import annotations

from typing import Final

import pytest

from deviceplugin.isolation.control import controls, is_share
from deviceplugin.isolation.way_in import NotHeldError
from halfcard.cards import CardLimit
from halfcard.isolation.shared_files import MOST_CARDS, NO_LIMIT, CardControl

UUID: Final = "GPU-8f3b2c1d-5a47-4e0e-9c7e-2f5d1b6a9e31"
BYTES: Final = bytes.fromhex("8f3b2c1d5a474e0e9c7e2f5d1b6a9e31")


@pytest.mark.parametrize(
    ("limit", "control"),
    [
        (CardLimit(0, UUID, 30, 50, 5120), CardControl(BYTES, 5120 << 20, 300, 500)),
        (CardLimit(0, UUID.upper().replace("GPU", "GPU"), None, None, 7552), CardControl(BYTES, 7552 << 20)),
        (CardLimit(0, UUID, 30, None, None), CardControl(BYTES, NO_LIMIT, 300, NO_LIMIT)),
    ],
    ids=["both", "memory alone", "cores alone"],
)
def test_limits_become_controls(limit: CardLimit, control: CardControl) -> None:
    assert controls([limit]) == [control]
    assert is_share([limit])


def test_a_container_without_limits_has_no_share() -> None:
    assert not is_share([CardLimit(0, UUID, None, None, None)])


@pytest.mark.parametrize("uuid", ["", "GPU-0", "MIG-8f3b2c1d-5a47-4e0e-9c7e-2f5d1b6a9e31", UUID + "\n"])
def test_a_card_that_cuda_cannot_name_is_not_held(uuid: str) -> None:
    with pytest.raises(NotHeldError, match="card 3: got the uuid"):
        controls([CardLimit(3, uuid, 30, 30, 5120)])


def test_more_cards_than_an_account_has_are_not_held() -> None:
    with pytest.raises(NotHeldError, match="17 cards; at most 16"):
        controls([CardLimit(0, UUID, 30, 30, 5120)] * (MOST_CARDS + 1))
