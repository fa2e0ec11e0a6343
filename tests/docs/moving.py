"""The pages about moving in: what their commands are, there and back, and what they set."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from .pages import ROOT, fences

TAG: Final = "moving"
"""Of fences that tests/cluster/test_moving.py runs, all of them."""

MOVING: Final = tuple(sorted((ROOT / "docs").glob("from-*.md")))
_BACK: Final = "\n## Go back\n"


def there_and_back(page: Path) -> tuple[list[str], list[str]]:
    """The scripts before and after the heading, in their order."""
    text = page.read_text(encoding="utf-8")
    turn = text.count("\n", 0, text.index(_BACK)) + 1
    found = [fence for fence in fences(page) if TAG in fence.tags]
    return [each.text for each in found if each.line < turn], [each.text for each in found if each.line > turn]


def settings(page: Path) -> dict[str, Any]:
    (found,) = [fence for fence in fences(page) if fence.language == "yaml"]
    read: dict[str, Any] = yaml.safe_load(found.text)
    return read
