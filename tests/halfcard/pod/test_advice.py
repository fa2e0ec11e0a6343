"""The fix of a problem, applied as it is written, leaves no problem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.placing.pod_facts import read_facts
from halfcard.pod.requests import read_pod, shape_problems
from halfcard.problems import Problem
from tests.builders import amounts, pod

DIALECTS: Final = Dialects()
Limits = dict[str, Any]

GUESSES: Final[list[Limits]] = [
    {"gpu": "0.5"},
    {"gpu": "500m"},
    {"gpu": "1.5"},
    {"core": 150, "memory": 20},
    {"core": "1.5", "memory": 20},
    {"core": "0.305", "memory": 20},
    {"core": 30},
    {"core": 30, "memory": 0},
    {"memory": 20},
    {"core": 0, "memory": 20},
    {"core": 30, "memory": "5.5"},
    {names.TENCENT + "/vcuda-cores": 30, "memory": 20},
    {"core": 30, names.TENCENT + "/vcuda-memroy": 20},
    {"tuya_core": 30},
    {"gpu_memory": 1024, "gpu_number": 1},
    {"gpu": 1, "gpu_shared": 1},
    {"gpu": 1, "gpumem": 3000, "gpumem_percentage": 50},
    {"gpu": 1, "gpucores": 101},
    {"gpu": 1, "gpumem_percentage": 101},
    {"sgpu": "1.5"},
    {"gpu_mem": "1.5"},
    {"core": 30, "memory": 20, "gpu": 1},
]


def problems(limits: Limits) -> list[Problem]:
    return list(shape_problems(read_pod(pod().asks(**limits).read, DIALECTS)))


@pytest.mark.parametrize("guess", GUESSES, ids=str)
def test_each_way_that_a_fix_offers_leaves_no_problem(guess: Limits) -> None:
    limits = amounts(**guess)
    found = problems(limits)
    assert found
    for problem in found:
        ways = list(applied(problem, limits))
        assert ways, problem.fix
        assert [(way, problems(way)) for way in ways if problems(way)] == []


@pytest.mark.parametrize("guess", GUESSES, ids=str)
def test_the_extender_gives_the_advice_of_the_webhook_to_a_pod_that_bypassed_it(guess: Limits) -> None:
    """The laws above hold for it, too: it shows the first problem, whole."""
    bypassing = read_facts(pod().asks(**amounts(**guess)).created().stored, DIALECTS)
    assert bypassing.trouble == str(problems(amounts(**guess))[0])


def applied(problem: Problem, limits: Limits) -> Iterator[Limits]:
    """Yields the limits after each way that the fix offers."""
    fix, place = problem.fix, re.search(r'\["(.+)"\]$', problem.where)
    here = place[1] if place else ""
    if renamed := re.fullmatch(r"rename (\S+) to (\S+)", fix):
        yield {renamed[2] if name == renamed[1] else name: amount for name, amount in limits.items()}
    elif kept := re.match(r"keep the resources of (\S+) or of (\S+)$", fix):
        for dialect in kept.groups():
            mine = DIALECTS.by_name[dialect].resources
            yield {name: amount for name, amount in limits.items() if name in mine}
    elif kept := re.match(r"keep (\S+) .*?or (\S+?\.\S+/\S+)", fix):
        for dropped in kept.groups():
            yield {name: amount for name, amount in limits.items() if name != dropped}
    elif (added := re.match(r"add (\S+?): (\d+)-(\d+)", fix)) or (
        added := re.match(r"add (\S+), such as (\S+) or (\d+)", fix)
    ):
        yield from ({**limits, added[1]: amount} for amount in added.groups()[1:])
    elif used := re.match(r"use (?:at most )?(\d+)(?: or (\d+))?", fix):
        yield from ({**limits, here: amount} for amount in used.groups() if amount)
        if beside := re.search(r"with (\S+): (\d+) and (\S+) in MiB", fix):
            yield {**limits, here: used[1], beside[1]: beside[2], beside[3]: 1024}


def test_a_fraction_that_the_api_server_respelled_is_named_as_it_is_written() -> None:
    assert [problem.got for problem in problems({"gpu": "500m"})] == ["0.5"]
    assert [problem.got for problem in problems({"core": "1500m", "memory": 20})] == ["1.5"]


def test_a_misspelled_resource_is_named_and_not_called_missing() -> None:
    (problem,) = problems({names.TENCENT + "/vcuda-cores": 30, "memory": 20})
    assert problem.fix == "rename tencent.com/vcuda-cores to tencent.com/vcuda-core"
