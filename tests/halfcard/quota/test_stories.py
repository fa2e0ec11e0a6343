"""Ledgers and queues, story by story; the stories are in `stories/`, the language in `storybook.py`."""

from __future__ import annotations

import pytest

from .storybook import FOLDER, Story, answers, rewritten, stories

STORIES = [
    pytest.param(file.stem, story, id=f"{file.stem}: {' '.join(story.title)}")
    for file in sorted(FOLDER.glob("*.story"))
    for story in stories(file.read_text())
]


@pytest.mark.parametrize(("file", "story"), STORIES)
def test_a_story(file: str, story: Story) -> None:
    for step, answer in answers(story):
        assert answer == step.answer, f"{file}.story:{step.line}: {' | '.join(step.commands)}"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.story")), ids=lambda file: file.stem)
def test_a_file_of_stories_is_written_as_the_storybook_writes_it(file: str) -> None:
    text = (FOLDER / file).read_text()
    assert rewritten(text) == text
