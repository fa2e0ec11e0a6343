"""The turns of rollouts in the queue of a quota."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.quota.turns import Member, Place, Turn, turns


def member(revision: str, created: int, cores: int = 100, *, turn: int | None = None) -> Member:
    return Member(revision, f"{created:02}", f"{created if turn is None else turn:02}", {"cores": cores, "cards": 1})


OLD: Final = [member("v1", 1), member("v1", 2), member("v1", 3)]

CASES: Final[dict[str, tuple[list[Member], list[Member], list[Member], list[str]]]] = {
    "alone": ([member("v1", 9)], [], [], ["09"]),
    "a surge takes the turn of a pod that still runs": ([member("v2", 9)], [member("v1", 1)], [], ["01"]),
    "a replacement takes the turn of a deleted pod": ([member("v2", 9)], OLD[:2], OLD[2:], ["02"]),
    "the last of a rollout": ([member("v2", 9)], [member("v2", 7, turn=1), member("v2", 8, turn=2)], OLD[2:], ["03"]),
    "a pod that was deleted is created again in the same revision": ([member("v1", 9)], OLD[:2], OLD[2:], ["03"]),
    "scaling up": ([member("v1", 9)], OLD, [], ["09"]),
    "a rollout that also scales up": ([member("v2", 8), member("v2", 9)], [member("v1", 1)], [], ["01", "09"]),
    "a larger pod": ([member("v2", 9, 200)], [member("v1", 1)], [], ["09"]),
    "a rollout that repairs another": ([member("v3", 9)], [member("v1", 1)], [member("v2", 5)], ["01"]),
    "a third revision while two run": ([member("v3", 9)], [member("v1", 1), member("v2", 5)], [], ["05"]),
    "a pod that was created in the same second": ([member("v2", 1)], [member("v1", 1)], [], ["01"]),
    "an earlier revision that waits": ([member("v2", 9), member("v1", 3)], [], [], ["03", "09 later"]),
    "an earlier revision that was created again": ([member("v2", 8), member("v1", 9)], OLD, [], ["02", "09 later"]),
}


def shown(turn: Turn) -> str:
    return f"{turn.time} later" if turn.place is Place.BEHIND_OUR_OWN else turn.time


@pytest.mark.parametrize(("waiting", "held", "left", "expected"), CASES.values(), ids=CASES)
def test_pods_take_the_turns_of_those_that_they_replace(
    waiting: list[Member], held: list[Member], left: list[Member], expected: list[str]
) -> None:
    found = turns({f"{at}": each for at, each in enumerate(waiting)}, held, left)
    assert [shown(found[f"{at}"]) for at in range(len(waiting))] == expected


MEMBERS: Final = st.lists(
    st.builds(member, st.sampled_from(["v1", "v2", "v3"]), st.integers(1, 30), st.integers(1, 100)), max_size=4
)


@given(MEMBERS, MEMBERS, MEMBERS, st.integers(1, 30))
def test_a_workload_never_passes_others_to_grow(
    waiting: list[Member], held: list[Member], left: list[Member], at: int
) -> None:
    """What passes a pod of another workload, and what passed it before, had room in what the workload had before."""
    pods, now = {f"{number}": each for number, each in enumerate(waiting)}, f"{at:02}"
    found = turns(pods, held, left) if pods else {}
    passing = [pods[uid] for uid, turn in found.items() if turn.time <= now < pods[uid].created]
    before = [each for each in (*held, *left, *waiting) if each.turn <= now and each not in passing]
    after = [*passing, *[each for each in held if each.turn > now]]
    if passing:
        assert sum(each.charge["cores"] for each in after) <= sum(each.charge["cores"] for each in before)


@given(MEMBERS, MEMBERS, MEMBERS)
def test_no_pod_of_an_earlier_revision_is_before_one_of_the_newest(
    waiting: list[Member], held: list[Member], left: list[Member]
) -> None:
    pods = {f"{number}": each for number, each in enumerate(waiting)}
    found = turns(pods, held, left) if pods else {}
    newest, behind = ([turn for turn in found.values() if (turn.place > Place.OWN) is later] for later in (False, True))
    assert not behind or max(newest) < min(behind)
