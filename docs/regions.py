"""The parts of the pages that are made from the code: what stands between two markers is replaced.

The law: a page says a name, a default or a number of the program only where the program itself has written it.
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
    """The page with every generated part as the code of today makes it."""
    return _REGION.sub(lambda found: f"{found[1]}\n{fragments[found['name']]()}\n\n{found[3]}", text)


def used(text: str) -> list[str]:
    return [found["name"] for found in _REGION.finditer(text)]
