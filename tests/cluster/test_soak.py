"""The judgement of the soak: right, excused and wrong answers. It needs no cluster."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.control_plane.client import ApiResponse
from halfcard import names

from .soak_calls import NO_ANSWER, Call, Down, Judgement, Kind, Window, judge

UNREACHED = 'failed calling webhook "validate-pods.halfcard.dev": connection refused'


def refused(message: str, status: int = 403) -> ApiResponse:
    return ApiResponse(status, {"message": message})


def stored(limits: dict[str, str]) -> ApiResponse:
    container: dict[str, Any] = {"resources": {"limits": limits}}
    return ApiResponse(201, {"spec": {"containers": [container]}})


REPAIRED = stored({names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"})
RAW = stored({names.VCUDA_CORE: "150", names.VCUDA_MEMORY: "20"})

RIGHT, EXCUSED, WRONG = Judgement


@pytest.mark.parametrize(
    ("kind", "answer", "down", "expected"),
    [
        (Kind.GOOD, REPAIRED, None, RIGHT),
        (Kind.GOOD, RAW, Down.ALL_REPLICAS, WRONG),
        (Kind.GOOD, refused(UNREACHED, 500), None, WRONG),
        (Kind.GOOD, refused(UNREACHED, 500), Down.REPLICA, EXCUSED),
        (Kind.GOOD, refused("limits: must be an integer", 422), Down.ALL_REPLICAS, EXCUSED),
        (Kind.GOOD, refused("limits: must be an integer", 422), None, WRONG),
        (Kind.GOOD, refused("[HC002] got 0.3"), Down.ALL_REPLICAS, WRONG),
        (Kind.GOOD, NO_ANSWER, Down.API_SERVER, EXCUSED),
        (Kind.GOOD, NO_ANSWER, Down.REPLICA, WRONG),
        (Kind.BAD, refused("[HC002] got 150"), None, RIGHT),
        (Kind.BAD, RAW, Down.ALL_REPLICAS, WRONG),
        (Kind.BAD, refused("a message of another webhook"), Down.REPLICA, WRONG),
        (Kind.BAD, refused(UNREACHED, 500), Down.ALL_REPLICAS, EXCUSED),
        (Kind.NO_GPU, stored({}), Down.ALL_REPLICAS, RIGHT),
        (Kind.NO_GPU, refused(UNREACHED, 500), Down.ALL_REPLICAS, WRONG),
        (Kind.NO_GPU, NO_ANSWER, Down.API_SERVER, EXCUSED),
    ],
)
def test_an_answer_is_judged_by_what_was_down(
    kind: Kind, answer: ApiResponse, down: Down | None, expected: Judgement
) -> None:
    windows = [Window(down, 10, 20)] if down else []
    assert judge(Call(kind, dry_run=False, begin=12, end=13, answer=answer), windows) is expected


@pytest.mark.parametrize(
    ("begin", "end", "expected"), [(1, 9, WRONG), (9, 11, EXCUSED), (19, 25, EXCUSED), (21, 25, WRONG)]
)
def test_only_calls_during_a_fault_are_excused(begin: float, end: float, expected: Judgement) -> None:
    call = Call(Kind.GOOD, dry_run=True, begin=begin, end=end, answer=refused(UNREACHED, 500))
    assert judge(call, [Window(Down.REPLICA, 10, 20)]) is expected
