"""Replaces the generated parts of a page, which are between two markers.

Names, defaults and numbers of the program belong into generated parts, so that they are always current.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.fragments import FRAGMENTS

ROOT: Final = Path(__file__).parents[1]
_REGION: Final = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def refreshed(text: str, fragments: Mapping[str, Callable[[], str]] = FRAGMENTS) -> str:
    """Returns the page with every generated part made again from the code."""
    return _REGION.sub(lambda found: f"{found[1]}\n{fragments[found['name']]()}\n\n{found[3]}", text)


def used(text: str) -> list[str]:
    return [found["name"] for found in _REGION.finditer(text)]
