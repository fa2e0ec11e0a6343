"""A pass holds while the files are the same; a failure is tried again after a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from deviceplugin.isolation.driver_files import TrialSubject
from deviceplugin.isolation.trials import Trials, card_to_try


class Node:
    """The trials of a node whose driver answers what `why` says."""

    def __init__(self, folder: Path) -> None:
        self.why = ""
        self.tried: list[TrialSubject] = []
        self.now = 0.0
        self.driver = folder / "libcuda.so.570"
        self.driver.write_text("driver")
        self.record = folder / "state" / "trials"
        self.restart()

    def restart(self) -> None:
        self.trials = Trials(self._attempt, self.record, lambda: self.now)

    async def _attempt(self, subject: TrialSubject) -> str:
        self.tried.append(subject)
        return self.why

    @property
    def subject(self) -> TrialSubject:
        return TrialSubject(Path("/libraries/1"), (("libcuda.so.1", self.driver),))

    async def run(self) -> str:
        await self.trials.run([self.subject, self.subject])
        return self.trials.why_not(self.subject)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


async def test_nothing_holds_before_its_trial(node: Node) -> None:
    assert "not been tried" in node.trials.why_not(node.subject)


async def test_a_pass_is_kept_over_restarts(node: Node) -> None:
    assert await node.run() == ""
    node.restart()
    assert node.trials.why_not(node.subject) == ""
    assert await node.run() == ""
    assert node.tried == [node.subject]


async def test_another_driver_or_other_libraries_are_tried_anew(node: Node) -> None:
    await node.run()
    others = node.subject._replace(libraries=Path("/libraries/2"))
    assert "not been tried" in node.trials.why_not(others)
    node.driver.write_text("a newer driver")
    assert "not been tried" in node.trials.why_not(node.subject)
    assert await node.run() == ""
    assert len(node.tried) == 2


async def test_a_failure_is_tried_again_after_a_minute(node: Node) -> None:
    node.why = "no card has memory left"
    assert await node.run() == node.why
    node.now, node.why = 59.0, ""
    assert await node.run() == "no card has memory left"
    node.now = 60.0
    assert await node.run() == ""


async def test_a_record_that_cannot_be_read_is_no_pass(node: Node) -> None:
    await node.run()
    node.record.write_bytes(b"\xff")
    node.restart()
    assert "not been tried" in node.trials.why_not(node.subject)


@pytest.mark.parametrize(
    ("free_mib", "card"),
    [({}, ""), ({"a": 1023}, ""), ({"a": 1024}, "a"), ({"a": 2000, "b": 9000, "c": 100}, "b")],
)
def test_the_card_with_the_most_memory_free_is_tried_and_none_where_a_program_would_notice(
    free_mib: dict[str, int], card: str
) -> None:
    assert card_to_try(free_mib) == card
