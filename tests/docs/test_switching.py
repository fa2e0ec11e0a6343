"""The pages about switching to Halfcard have one structure, and tests/cluster/test_switching.py runs all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from settings.installation import read_settings
from tests.cluster.test_switching import CASES

from .switching import SWITCHING_PAGES, there_and_back
from .switching import settings as settings_of

SECTIONS: Final = ["What stays", "What changes", "Steps", "Go back", "What is different"]
MOST_LINES: Final = 90

each_page = pytest.mark.parametrize("page", SWITCHING_PAGES, ids=lambda page: page.name)


def test_every_page_has_a_test_on_a_cluster() -> None:
    assert {page.stem for page in SWITCHING_PAGES} == {f"from-{name}" for name in CASES}


@each_page
def test_the_index_says_whether_nodes_are_drained(page: Path) -> None:
    (line,) = re.findall(rf"^- \[.*\]\({page.name}\).*$", (page.parent / "README.md").read_text(), re.MULTILINE)
    is_drained = CASES[page.stem.removeprefix("from-")].drained
    assert ("nodes are drained" in line) == is_drained
    assert ("kubectl drain" in page.read_text()) == is_drained


@each_page
def test_a_page_is_short_and_has_the_same_five_sections(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert len(text.splitlines()) <= MOST_LINES


@each_page
def test_a_page_has_commands_for_both_directions_and_valid_settings(page: Path) -> None:
    assert all(there_and_back(page))
    assert read_settings(settings_of(page)).node_resources
