"""The pages about moving in have one structure, and tests/cluster/test_moving.py knows them all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from settings.installation import read_settings
from tests.cluster.test_moving import CASES

from .moving import MOVING, there_and_back
from .moving import settings as settings_of

SECTIONS: Final = ["What stays", "What changes", "Steps", "Go back", "What is different"]
MOST_LINES: Final = 90

each_page = pytest.mark.parametrize("page", MOVING, ids=lambda page: page.name)


def test_every_page_is_run() -> None:
    assert {page.stem for page in MOVING} == {f"from-{name}" for name in CASES}


@each_page
def test_where_people_choose_a_page_they_read_whether_nodes_are_drained(page: Path) -> None:
    (line,) = re.findall(rf"^- \[.*\]\({page.name}\).*$", (page.parent / "README.md").read_text(), re.MULTILINE)
    is_drained = CASES[page.stem.removeprefix("from-")].drained
    assert ("nodes are drained" in line) == is_drained
    assert ("kubectl drain" in page.read_text()) == is_drained


@each_page
def test_a_page_is_short_and_says_the_same_five_things(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert len(text.splitlines()) <= MOST_LINES


@each_page
def test_a_page_has_commands_for_both_ways_and_settings_that_are_read(page: Path) -> None:
    assert all(there_and_back(page))
    assert read_settings(settings_of(page)).node_resources
