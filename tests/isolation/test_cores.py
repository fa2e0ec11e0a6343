"""A container gets its share of a card's cores, however long its kernels are and however it launches them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from .cores import CoresNode, Held, Load

SETTLED_S: Final = 5
CORRECTION_LASTS_S: Final = 120
SPARE_LASTS_S: Final = 5
SECONDS: Final = 25
"""A kernel of 200 ms is 1 % of what is measured."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> CoresNode:
    return CoresNode(tmp_path_factory.mktemp("cores") / "halfcard")


def mean(thousandths: list[int]) -> float:
    """In per cent of the card, after the first seconds."""
    return sum(thousandths[SETTLED_S:]) / len(thousandths[SETTLED_S:]) / 10


def held(share: int, way: str, *ms: float, card: int = 0, ceiling: int | None = None) -> Held:
    return Held(share, (Load(way, ms, card),), ceiling)


MIXED: Final = (0.05, 0.1, 0.5, 2, 10)

TABLE: Final = {
    "0.1 ms ahead": ([held(30, "ahead", 0.1)], [30.0], 2.0),
    "5 ms ahead": ([held(30, "ahead", 5)], [30.0], 2.0),
    "200 ms ahead": ([held(30, "ahead", 200)], [30.0], 4.0),
    "0.1 ms awaited": ([held(30, "awaited", 0.1)], [30.0], 2.0),
    "5 ms awaited": ([held(30, "awaited", 5)], [30.0], 2.0),
    "graphs": ([held(30, "graph", 5)], [30.0], 2.0),
    "cooperative": ([held(30, "cooperative", 5)], [30.0], 2.0),
    "configured": ([held(30, "configured", 5)], [30.0], 2.0),
    "30 and 70, 0.1 ms": ([held(30, "ahead", 0.1), held(70, "ahead", 0.1)], [30.0, 70.0], 2.0),
    "30 and 70, 5 ms": ([held(30, "ahead", 5), held(70, "ahead", 5)], [30.0, 70.0], 2.0),
    "30 of 0.1 ms and 70 of 200 ms": ([held(30, "ahead", 0.1), held(70, "ahead", 200)], [30.0, 70.0], 4.0),
    "200 ms": ([held(30, "ahead", 200), held(70, "ahead", 200)], [30.0, 70.0], 4.0),
    "30, 30 and 40, mixed": ([held(each, "ahead", *MIXED) for each in (30, 30, 40)], [30.0, 30.0, 40.0], 2.0),
    "bursts and mixed": ([held(30, "bursts", 0.5), held(70, "ahead", *MIXED)], [30.0, 70.0], 2.0),
    "50 awaited and 50 ahead": ([held(50, "awaited", 1), held(50, "ahead", 1)], [50.0, 50.0], 2.0),
    "a ceiling of 60 while there is spare": ([held(30, "ahead", 1, ceiling=60)], [60.0], 2.0),
    "a ceiling of 60 and a neighbour": ([held(30, "ahead", 1, ceiling=60), held(70, "ahead", 1)], [30.0, 70.0], 2.0),
    "two processes": ([Held(40, (Load("ahead", (0.3,)), Load("ahead", (0.3,))))], [20.0, 20.0], 2.0),
}


@pytest.mark.parametrize("row", TABLE)
def test_a_container_gets_its_share(node: CoresNode, tmp_path: Path, row: str) -> None:
    containers, wanted, tolerance = TABLE[row]
    used = node.used(tmp_path, *containers, seconds=SECONDS, agent_s=SECONDS)
    assert [mean(each) for each in used[0]] == pytest.approx(wanted, abs=tolerance)


NEIGHBOURS: Final = [held(30, "ahead", 5), held(70, "ahead", 5)]


def test_shares_hold_while_the_agent_is_away_for_a_minute_and_end_with_its_word(
    node: CoresNode, tmp_path: Path
) -> None:
    used = node.used(tmp_path, *NEIGHBOURS, seconds=15 + CORRECTION_LASTS_S + 60, agent_s=15)[0]
    assert [mean(each[15 - SETTLED_S : 75]) for each in used] == pytest.approx([30.0, 70.0], abs=2)
    small, large = [mean(each[-20:]) for each in used]  # what was launched long ahead has run by then
    assert small < 20 and large == pytest.approx(70, abs=1)  # as without any agent


def test_spare_cores_end_soon_after_the_agent(node: CoresNode, tmp_path: Path) -> None:
    used = node.used(tmp_path, held(30, "ahead", 1, ceiling=60), seconds=40, agent_s=10)[0]
    assert [mean(each[:10]) for each in used] == pytest.approx([60.0], abs=2)
    assert [mean(each[10 + SPARE_LASTS_S - SETTLED_S + 1 :]) for each in used] == pytest.approx([30.0], abs=2)


def test_without_any_agent_none_gets_more_than_its_share(node: CoresNode, tmp_path: Path) -> None:
    small, large = node.used(tmp_path, *NEIGHBOURS, seconds=SECONDS, agent_s=0)[0]
    assert mean(small) < 31
    assert mean(large) == pytest.approx(70, abs=1)


def test_each_card_of_a_container_has_its_own_share(node: CoresNode, tmp_path: Path) -> None:
    def both(share: int, *ms: float) -> Held:
        return Held(share, tuple(Load("ahead", (each,), card) for card, each in enumerate(ms)))

    used = node.used(tmp_path, both(30, 5, 0.1), both(70, 5, 5), seconds=SECONDS, agent_s=SECONDS)
    for card in (0, 1):
        on_card = [mean(used[card][card]), mean(used[card][2 + card])]
        assert on_card == pytest.approx([30.0, 70.0], abs=2)


def test_a_ceiling_needs_the_word_of_the_agent(node: CoresNode, tmp_path: Path) -> None:
    lone = held(30, "ahead", 1, ceiling=60)
    assert [mean(each) for each in node.used(tmp_path, lone, seconds=SECONDS, agent_s=0)[0]] == [30.0]


def test_long_kernels_leave_what_a_thread_took_for_short_ones(node: CoresNode, tmp_path: Path) -> None:
    both = held(30, "ahead", 0.15, 0.005)
    assert [mean(each) for each in node.used(tmp_path, both, seconds=SECONDS, agent_s=0)[0]] == pytest.approx(
        [30.0], abs=1
    )
