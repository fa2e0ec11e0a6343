"""The C and the Python of the shared files agree: what one writes, the other reads."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.isolation.shared_files import (
    CONTROL_SIZE,
    MOST_CARDS,
    MOST_PROCESSES,
    NO_LIMIT,
    BrokenAccountError,
    CardControl,
    Excess,
    measured_at_of_control,
    new_account,
    read_account,
    write_control,
)

from .build import SANITIZED, build

_MUTATIONS: Final = 1_000_000
_AT_ONCE: Final = 1000
_EDGES: Final = [
    number.to_bytes(8, "little") for number in (0, 1, MOST_PROCESSES, MOST_PROCESSES + 1, 2**63, 2**64 - 1)
]

NUMBER = st.integers(0, NO_LIMIT)
CONTROLS = st.lists(
    st.builds(CardControl, st.binary(min_size=16, max_size=16), *[NUMBER] * 6, excess=st.just(())),
    max_size=MOST_CARDS,
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made = build(tmp_path_factory.mktemp("agreement") / "agreement.so", ["agreement.c", "account.c"])
    found = ctypes.CDLL(str(made))
    found.take.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
    found.used.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    found.used.restype = found.measured_at.restype = ctypes.c_uint64
    return found


@given(cards=CONTROLS)
def test_c_reads_the_limits_that_python_writes(library: ctypes.CDLL, cards: list[CardControl]) -> None:
    control = write_control(cards)
    assert len(control) == CONTROL_SIZE
    for at, card in enumerate(cards):
        numbers, uuid = (ctypes.c_uint64 * 6)(), ctypes.create_string_buffer(16)
        assert library.numbers(control, at, numbers, uuid) == len(numbers)
        assert (uuid.raw, *numbers) == card[:-1]


def test_c_reads_when_python_says_that_it_measured(library: ctypes.CDLL) -> None:
    control = bytearray(write_control([]))
    assert library.measured_at(bytes(control)) == 0
    at, written = measured_at_of_control(2**63 + 5)
    control[at : at + len(written)] = written
    assert library.measured_at(bytes(control)) == 2**63 + 5


@given(
    memory=st.integers(0, 100),
    excess=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 30)), max_size=5),
    takes=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 30)), max_size=30),
    at=st.integers(0, MOST_CARDS - 1),
)
def test_python_reads_what_c_took_and_c_takes_what_the_control_file_allows(
    library: ctypes.CDLL, memory: int, excess: list[tuple[int, int]], takes: list[tuple[int, int]], at: int
) -> None:
    card = CardControl(b"\1" * 16, memory, excess=tuple(Excess(*each) for each in excess))
    control = write_control([CardControl(b"\2" * 16)] * at + [card])
    account = ctypes.create_string_buffer(new_account(), len(new_account()))
    taken: dict[int, int] = {}
    refused: dict[int, int] = {}
    for owner, size in takes:
        taken.setdefault(owner, 0)
        beside = sum(more for row, who in enumerate(taken) for other, more in excess[row : row + 1] if who == other)
        fits = sum(taken.values()) + beside + size <= memory
        assert library.take(account, control, at, owner, size) == fits
        (taken if fits else refused)[owner] = (taken if fits else refused).get(owner, 0) + (size if fits else 1)
    read = read_account(account.raw, "account")[at]
    assert {row.owner: row.bytes for row in read.rows.values()} == taken
    assert {row.owner: row.refused for row in read.rows.values() if row.refused} == refused
    assert read.holder == 0


def test_a_card_without_a_limit_gives_any_amount(library: ctypes.CDLL) -> None:
    account = ctypes.create_string_buffer(new_account(), len(new_account()))
    control = write_control([CardControl(b"\1" * 16)])
    assert library.take(account, control, 0, 1, NO_LIMIT) == 1


@pytest.mark.parametrize("used", [MOST_PROCESSES, MOST_PROCESSES + 1, NO_LIMIT])
def test_a_process_more_than_an_account_has_rows_is_refused(library: ctypes.CDLL, used: int) -> None:
    data = bytearray(new_account())
    struct.pack_into("=2Q", data, 64, 0, used)
    for row in range(MOST_PROCESSES):
        struct.pack_into("=2Q", data, 128 + row * 64, row + 1, 1)
    account = ctypes.create_string_buffer(bytes(data), len(data))
    control = write_control([CardControl(b"\1" * 16, 1000)])
    assert library.take(account, control, 0, MOST_PROCESSES + 1, 1) == 0
    assert library.used(account, control, 0) == MOST_PROCESSES


def test_sums_of_any_size_do_not_wrap(library: ctypes.CDLL) -> None:
    account = ctypes.create_string_buffer(new_account(), len(new_account()))
    unlimited, limited = write_control([CardControl(b"\1" * 16)]), write_control([CardControl(b"\1" * 16, 1000)])
    for owner in (1, 2):
        assert library.take(account, unlimited, 0, owner, 2**63) == 1
    assert library.take(account, limited, 0, 3, 1) == 0


def test_a_program_that_asks_all_the_time_looks_for_dead_processes_once_in_a_moment(library: ctypes.CDLL) -> None:
    account = ctypes.create_string_buffer(new_account(), len(new_account()))
    control = write_control([CardControl(b"\1" * 16)])
    for owner in (1, 2, 3):
        library.take(account, control, 0, owner, 10)
    assert library.questions(account, control, 100, 2) == 2 * 3


def test_no_bytes_in_either_file_crash_a_process(tmp_path: Path) -> None:
    fuzz = build(tmp_path / "fuzz", ["fuzz.c", "account.c"], "-O2", *SANITIZED)
    done = subprocess.run([str(fuzz), str(_MUTATIONS)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_agent_reads_or_refuses_every_account() -> None:
    """With many mutations in each account: what they can be is up to the container."""
    random, account, refused = Random(1), bytearray(new_account()), 0
    for _ in range(_MUTATIONS // _AT_ONCE):
        for at in random.choices(range(0, len(account), 8), k=_AT_ONCE):
            account[at : at + 8] = random.randbytes(8) if random.random() < 0.5 else random.choice(_EDGES)
        if random.random() < 0.9:
            account[:16] = new_account()[:16]
        try:
            cards = read_account(bytes(account[: random.choice([len(account), len(account), 100])]), "account")
        except BrokenAccountError:
            refused += 1
        else:
            assert len(cards) == MOST_CARDS and all(len(card.rows) <= MOST_PROCESSES for card in cards)
    assert 0 < refused < _MUTATIONS // _AT_ONCE
