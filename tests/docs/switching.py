"""Reads the pages about switching to Halfcard: their commands for both directions, and their settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from .pages import ROOT, fences

TAG: Final = "switching"
"""The tag of fences that tests/cluster/test_switching.py runs."""

SWITCHING_PAGES: Final = tuple(sorted((ROOT / "docs").glob("from-*.md")))
_BACK: Final = "\n## Go back\n"


def there_and_back(page: Path) -> tuple[list[str], list[str]]:
    """Returns the scripts before and after the heading "Go back", in their order."""
    text = page.read_text(encoding="utf-8")
    heading = text.count("\n", 0, text.index(_BACK)) + 1
    found = [fence for fence in fences(page) if TAG in fence.tags]
    return [each.text for each in found if each.line < heading], [each.text for each in found if each.line > heading]


def settings(page: Path) -> dict[str, Any]:
    (found,) = [fence for fence in fences(page) if fence.language == "yaml"]
    read: dict[str, Any] = yaml.safe_load(found.text)
    return read
