"""Cores that no neighbour needs are spare; shares are never touched."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.isolation.spare_cores import CoreUse, with_spare

PARTS: Final = st.integers(0, 1000)
USES: Final = st.lists(st.builds(CoreUse, st.none() | PARTS, st.none() | PARTS, PARTS, st.booleans()), max_size=6)


def use(share: int, ceiling: int | None = None, used: int = 0, *, waits: bool = False) -> CoreUse:
    return CoreUse(share, ceiling, used, waits)


HUNGRY: Final = use(300, 600, 300, waits=True)

CASES: Final = {
    "alone": ([HUNGRY], 0, {0}),
    "up to the whole card": ([use(300, 1000, 300, waits=True)], 0, {0}),
    "beside one that is idle": ([HUNGRY, use(700)], 0, {0}),
    "beside one that uses a little of its share": ([HUNGRY, use(700, used=300)], 0, {0}),
    "beside one that waits for its share": ([HUNGRY, use(700, used=500, waits=True)], 0, set()),
    "beside one that is using its share": ([HUNGRY, use(700, used=700)], 0, set()),
    "beside one without a limit": ([HUNGRY, CoreUse(None, None, 400, waits=False)], 0, set()),
    "beside programs that are not held": ([HUNGRY], 500, set()),
    "without a ceiling": ([use(300, used=300, waits=True)], 0, set()),
}


@pytest.mark.parametrize(("uses", "others", "found"), CASES.values(), ids=CASES)
def test_a_container_has_spare_cores_while_no_neighbour_needs_them(
    uses: list[CoreUse], others: int, found: set[int]
) -> None:
    assert with_spare(uses, others, 0) == found


def test_containers_that_cannot_both_exceed_their_share_do_so_in_turn() -> None:
    assert [with_spare([HUNGRY, HUNGRY], 0, turn) for turn in range(3)] == [{0}, {1}, {0}]


@given(USES, PARTS, st.integers(0, 100))
def test_ceilings_in_use_and_all_other_needs_fit_on_the_card(uses: list[CoreUse], others: int, turn: int) -> None:
    found = with_spare(uses, others, turn)
    assert all(uses[at].ceiling is not None for at in found)
    if any((uses[at].ceiling or 0) > uses[at].need for at in found):
        most = sum(max(each.need, (each.ceiling or 0) * (at in found)) for at, each in enumerate(uses))
        assert most + others <= 1000
    assert all(each.need == each.share for each in uses if each.waits and each.share is not None)


@given(USES, PARTS)
def test_a_container_that_needs_less_takes_spare_cores_from_nobody(uses: list[CoreUse], others: int) -> None:
    idle = [each._replace(used=0, waits=False) if at else each for at, each in enumerate(uses)]
    assert with_spare(uses, others, 0) & {0} <= with_spare(idle, others, 0)
