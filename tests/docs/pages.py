"""Reads the pages: their fences, links, headings and inline code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
)
_FENCE: Final = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_GENERATED: Final = re.compile(r"<!-- generated: .*?<!-- end -->", re.DOTALL)
_LINK: Final = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE: Final = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Fence:
    page: Path
    line: int
    language: str
    tags: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def fences(page: Path) -> Iterator[Fence]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        language, *tags = found["info"].split() or [""]
        yield Fence(page, text.count("\n", 0, found.start()) + 1, language, tuple(tags), found["text"])


def all_fences(*languages: str) -> list[Fence]:
    return [fence for page in PAGES for fence in fences(page) if fence.language in languages]


def prose(page: Path) -> str:
    """Returns the page without its fences."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def written(page: Path) -> str:
    """Returns the page without its fences and without the generated parts."""
    return _GENERATED.sub("", prose(page))


def links(page: Path) -> list[str]:
    return [found["target"] for found in _LINK.finditer(prose(page))]


def inline_code(page: Path) -> list[str]:
    return _CODE.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Returns the anchors of the headings, as GitHub makes them."""
    titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in _HEADING.findall(prose(page)))
    return {title.strip().replace(" ", "-") for title in titles}
