"""Any bytes are an account or are refused. Whether C reads and writes the same is tested in tests/isolation."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.isolation.shared_files import (
    ACCOUNT_SIZE,
    MOST_CARDS,
    MOST_PROCESSES,
    AccountCard,
    BrokenAccountError,
    account_size,
    new_account,
    read_account,
)

FIRST_CARD = 64
FIRST_ROW = FIRST_CARD + 64


def changed(at: int, *numbers: int) -> bytes:
    data = bytearray(new_account())
    struct.pack_into(f"={len(numbers)}Q", data, at, *numbers)
    return bytes(data)


def test_a_new_account_shows_nothing() -> None:
    assert read_account(new_account(), "account") == (AccountCard(0, 0, {}),) * MOST_CARDS


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(new_account()[:-1], f"{ACCOUNT_SIZE - 1} bytes", id="cut"),
        pytest.param(b"", "0 bytes", id="empty"),
        pytest.param(new_account() + b"\0", f"{ACCOUNT_SIZE + 1} bytes", id="grown"),
        pytest.param(bytes(ACCOUNT_SIZE), r"b'\\x00", id="zeroed"),
        pytest.param(changed(8, 3), "b'Haccount' 3", id="of a later version"),
    ],
)
def test_a_broken_account_is_refused_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(BrokenAccountError, match=rf"^pod team-a/train: got {message}.*restart the container"):
        read_account(data, "pod team-a/train")


def test_only_rows_that_were_used_and_have_an_owner_are_read() -> None:
    data = changed(FIRST_CARD, 7, 2, 5, 0, 0, 0, 0, 0, *[0] * 8, *[(12 << 42) + 1, 100, 2, 3, 4, 5, 6, 7], *[9] * 8)
    card = read_account(data, "account")[0]
    assert (card.holder, card.recovered, list(card.rows)) == (7, 5, [1])
    assert card.rows[1].pid == 12 and card.rows[1][1:] == (100, 2, 3, 4, 5, 6, 7)


@given(at=st.integers(0, ACCOUNT_SIZE - 8), garbage=st.binary(min_size=1, max_size=2000))
def test_any_bytes_are_read_or_refused(at: int, garbage: bytes) -> None:
    data = (new_account()[:at] + garbage + new_account()[at + len(garbage) :])[:ACCOUNT_SIZE]
    try:
        cards = read_account(data, "account")
    except BrokenAccountError:
        return
    assert len(cards) == MOST_CARDS and all(row.owner for card in cards for row in card.rows.values())


def test_the_first_cards_alone_are_read_of_a_whole_file_only() -> None:
    whole = changed(FIRST_CARD, 7)
    beginning = whole[: account_size(2)]
    assert read_account(beginning, "account", 2) == read_account(whole, "account")[:2]
    for data, size in ((beginning, ACCOUNT_SIZE - 1), (beginning[:-1], ACCOUNT_SIZE), (b"", ACCOUNT_SIZE)):
        with pytest.raises(BrokenAccountError):
            read_account(data, "account", 2, size)


def test_rows_end_with_their_card() -> None:
    data = bytearray(changed(FIRST_CARD, 0, 2**64 - 1))
    struct.pack_into("=2Q", data, FIRST_ROW + MOST_PROCESSES * 64, 1 << 42, 0)
    assert [list(card.rows) for card in read_account(bytes(data), "account")[:2]] == [[], []]
