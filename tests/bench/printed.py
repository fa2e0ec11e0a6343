"""What every benchmark's command does, whatever it measures: a table that fits a terminal, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.figures import WIDTH


def parts_of(
    main: Callable[[Sequence[str]], int], *arguments: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> list[Any]:
    """The parts of its table, as the JSON has them."""
    file = folder / "bench.json"
    assert main([*arguments, "--json", str(file)]) == 0
    assert max(len(line) for line in capfd.readouterr().out.splitlines()) <= WIDTH
    parts: list[Any] = json.loads(file.read_text())["parts"]
    return parts
