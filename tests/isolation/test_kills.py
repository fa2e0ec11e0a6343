"""Real processes that are killed at random moments never use more than their limit, and leave nothing behind."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from .build import build

KILLS: Final = 5000
LIMIT_MIB: Final = 6000


@pytest.mark.timeout(300)
def test_killed_processes_neither_exceed_the_limit_nor_keep_memory_nor_block_others(tmp_path: Path) -> None:
    killing = build(tmp_path / "killing", ["killing.c", "card.c", "account.c", "process.c"], "-O2")
    done = subprocess.run([str(killing), str(KILLS), "1"], capture_output=True, text=True, check=True)
    words = done.stdout.split()
    figures = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert LIMIT_MIB * 0.9 < figures["most"] <= LIMIT_MIB, figures
    assert (figures["leaked"], figures["stuck"]) == (0, 0), figures
    assert figures["recovered"] > 0 and figures["refused"] > 0, figures
