"""The laws of isolation/account.h, in every order of the steps of several processes that may die at any of them."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .build import Change, build

LAWS: Final = ("kept", "over the limit", "refused without need", "hangs", "leaks")
SMALL: Final = (
    Change("shared_files.h", "MOST_PROCESSES 512", "MOST_PROCESSES 3"),
    Change("account.c", "SPINS 100", "SPINS 1"),
)
"""So that rows run out, and waiting is a few steps."""

SCRIPTS: Final = 3000


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = ctypes.CDLL(str(build(tmp_path_factory.mktemp("model") / "model.so", ["model.c"], changes=SMALL)))
    library.model_explore.argtypes = [ctypes.c_uint64, ctypes.c_int]
    return library


@given(script=st.binary(max_size=800))
@settings(max_examples=500)
def test_no_order_of_takes_gives_and_deaths_breaks_a_law(account: ctypes.CDLL, script: bytes) -> None:
    assert LAWS[account.model_run(script, len(script))] == "kept"


def test_no_random_order_breaks_a_law(account: ctypes.CDLL) -> None:
    assert LAWS[account.model_explore(1, 4 * SCRIPTS)] == "kept"


MUTANTS: Final = {
    "takes the lock of the living": Change("account.c", "!holder || !process_is_gone(holder)", "!holder"),
    "never takes a lock of the dead": Change("account.c", "if (!holder || !proc", "if (1 || !proc"),
    "takes the lock of the dead without comparing": Change(
        "account.c",
        "!SWAP(mine->card->lock, holder, mine->self)) return 0;",
        "0) return 0; STORE(mine->card->lock, mine->self);",
    ),
    "does not lock": Change("account.c", "int taken = have_row(mine)", "unlock(mine); int taken = have_row(mine)"),
    "unlocks before it adds": Change("account.c", "    if (mine->row) ADD(*", "    unlock(mine); if (mine->row) ADD(*"),
    "does not unlock": Change("account.c", "    unlock(mine);\n    return taken;", "    return taken;"),
    "does not add what it takes": Change("account.c", "taken ? bytes : 1", "taken ? 0 : 1"),
    "does not check the limit": Change(
        "account.c", "have_row(mine) && fits_without_dead(mine, bytes)", "have_row(mine)"
    ),
    "refuses what just fits": Change("account.c", "bytes) <= LOAD", "bytes) < LOAD"),
    "does not free dead rows": Change("account.c", "    free_dead(mine);\n    return fits", "    return fits"),
    "frees rows of the living": Change("account.c", "owner && process_is_gone(owner)", "owner"),
    "frees a row before its numbers": Change(
        "account.c", "    uint64_t *numbers", "    STORE(row->owner, 0);\n    uint64_t *numbers"
    ),
    "keeps the numbers of a dead row": Change(
        "account.c", "    while (numbers < end)", "    while (0 && numbers < end)"
    ),
    "does not name its row": Change("account.c", "if (mine->row) STORE", "if (0) STORE"),
    "does not free dead rows for a new one": Change(
        "account.c", "        free_dead(mine);\n        mine->row = row", "        mine->row = row"
    ),
    "does not count the rows": Change("account.c", "STORE(mine->card->rows_used, used + 1);", ""),
    "gives nothing back": Change("account.c", "ADD(mine->row->bytes, -bytes)", "(void)mine, (void)bytes"),
    "shows memory of the dead": Change("account.c", "    free_dead_once_in_a_moment(mine);\n", ""),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_an_account_with_one_rule_broken_is_found(mutant: str, tmp_path: Path) -> None:
    explore = build(tmp_path / "explore", ["model.c", "explore.c"], changes=[*SMALL, MUTANTS[mutant]])
    assert subprocess.run([str(explore), "1", str(SCRIPTS)], check=False).returncode != 0  # a law, or it crashes
