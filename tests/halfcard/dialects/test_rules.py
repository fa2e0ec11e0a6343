"""Each system's own rules: which amounts break which rule, and where."""

from __future__ import annotations

from typing import Any, Final

import pytest

from halfcard import names
from halfcard.dialects import ALL, INCOMPATIBLE, Dialect, Dialects
from halfcard.pod.requests import ContainerRequest, claims, read_pod, shape_problems
from halfcard.problems import (
    CORES,
    MEMORY_ALONE,
    MIXED_CONTAINER,
    MIXED_POD,
    ONE_KIND,
    PER_CENT,
    SHARE_NEEDS_MEMORY,
    Problem,
    Rule,
)
from tests.builders import WORDS, PodBuilder, pod

DIALECTS: Final = Dialects()


def wish(words: dict[str, Any]) -> ContainerRequest:
    (asked,) = read_pod(pod().asks(**words).read, DIALECTS)
    return asked.request


def problems(of: PodBuilder) -> list[Problem]:
    return list(shape_problems(read_pod(of.read, DIALECTS)))


def limit(word: str) -> str:
    return f'resources.limits["{WORDS[word]}"]'


BROKEN: Final[dict[str, tuple[dict[str, Any], list[tuple[Rule, str, str | None]]]]] = {
    "one and a half cards": ({"core": 150}, [(CORES, "core", "150")]),
    "a share without memory": ({"core": 30}, [(SHARE_NEEDS_MEMORY, "memory", None)]),
    "a share with no memory": ({"core": 30, "memory": 0}, [(SHARE_NEEDS_MEMORY, "memory", "0")]),
    "memory alone": ({"memory": 20}, [(MEMORY_ALONE, "core", None)]),
    "memory beside no share": ({"core": 0, "memory": 20}, [(MEMORY_ALONE, "core", "0")]),
    "tuya's share without memory": ({"tuya_core": 30}, [(SHARE_NEEDS_MEMORY, "tuya_memory", None)]),
    "volcano's share and cards": (
        {"gpu_memory": 1024, "gpu_number": 1},
        [(ONE_KIND, "gpu_memory", "1024")],
    ),
    "nvidia's cards and slots": ({"gpu": 1, "gpu_shared": 1}, [(ONE_KIND, "gpu_shared", "1")]),
    "hami's MiB and per cent": (
        {"gpu": 1, "gpumem": 3000, "gpumem_percentage": 50},
        [(ONE_KIND, "gpumem_percentage", "50")],
    ),
    "hami's cores over a card": ({"gpu": 1, "gpucores": 101}, [(PER_CENT, "gpucores", "101")]),
    "hami's memory over a card": ({"gpu": 1, "gpumem_percentage": 101}, [(PER_CENT, "gpumem_percentage", "101")]),
    "everything wrong with hami at once": (
        {"gpumem": 1, "gpumem_percentage": 200, "gpucores": 300},
        [(ONE_KIND, "gpumem_percentage", "200"), (PER_CENT, "gpucores", "300"), (PER_CENT, "gpumem_percentage", "200")],
    ),
}


@pytest.mark.parametrize(("words", "broken"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_named_with_its_field(
    words: dict[str, Any], broken: list[tuple[Rule, str, str | None]]
) -> None:
    found = [(problem.code, problem.where, problem.got) for problem in wish(words).problems]
    assert found == [(rule.code, limit(word), got) for rule, word, got in broken]


KEPT: Final[dict[str, dict[str, Any]]] = {
    "a share": {"core": 1, "memory": 1},
    "whole cards": {"core": 100},
    "many whole cards": {"core": 1600, "memory": 1000},
    "tuya's memory alone": {"tuya_memory": 1},
    "hami: exactly the whole card": {"gpu": 1, "gpucores": 100, "gpumem_percentage": 100},
    "one of two that exclude each other is 0": {"gpu_memory": 1024, "gpu_number": 0},
    "hami: one of two is 0": {"gpu": 1, "gpumem": 3000, "gpumem_percentage": 0},
}


@pytest.mark.parametrize("words", KEPT.values(), ids=KEPT)
def test_a_valid_pod_has_no_problem(words: dict[str, Any]) -> None:
    assert wish(words).problems == ()
    assert wish(words).claim is not None


MIXED: Final[dict[str, tuple[dict[str, Any], set[str]]]] = {
    "tencent and nvidia": ({"core": 30, "memory": 20, "gpu": 1}, {"tencent", "nvidia"}),
    "tencent and tuya's vcuda": ({"core": 30, "tuya_memory": 20}, {"tencent", "tuya-vcuda"}),
    "aliyun and volcano": ({"gpu_mem": 3, "gpu_memory": 3000}, {"aliyun", "volcano"}),
    "tuya's halves and hami": ({"sgpu": 1, "gpumem": 3000}, {"tuya", "hami"}),
    "time slices and hami": ({"gpu_shared": 1, "gpumem": 3000}, {"nvidia", "hami"}),
}


@pytest.mark.parametrize(("words", "systems"), MIXED.values(), ids=MIXED)
def test_a_container_may_use_only_one_dialect(words: dict[str, Any], systems: set[str]) -> None:
    mixed = wish(words)
    (problem,) = mixed.problems
    assert (problem.code, problem.where) == (MIXED_CONTAINER.code, "resources")
    assert problem.got is not None and set(problem.got.split(" and ")) == systems
    assert mixed.claim is None


def test_an_amount_of_0_does_not_mix_dialects() -> None:
    spoken = wish({"core": 30, "memory": 20, "gpu": 0, "sgpu": "0"})
    assert spoken.problems == ()
    assert spoken.claim is not None and spoken.claim.dialect == "tencent"


EXAMPLES: Final = {dialect.name: dialect.examples[0] for dialect in ALL}


@pytest.mark.parametrize("one", EXAMPLES)
@pytest.mark.parametrize("other", EXAMPLES)
def test_containers_of_one_pod_may_differ_if_a_node_serves_both_dialects(one: str, other: str) -> None:
    both = pod().container(limits=EXAMPLES[one]).container(limits=EXAMPLES[other])
    found = problems(both)
    if frozenset({one, other}) in INCOMPATIBLE:
        assert [(each.code, each.where) for each in found] == [(MIXED_POD.code, "spec.containers")]
        assert found[0].got in (f"{one} and {other}", f"{other} and {one}")
    else:
        assert found == []
        assert [claim.dialect for claim in claims(read_pod(both.read, DIALECTS))] == [one, other]


def test_nvidia_and_hami_are_refused_in_one_pod() -> None:
    assert frozenset({"nvidia", "hami"}) in INCOMPATIBLE


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
def test_every_resource_of_a_dialect_is_read_and_every_example_makes_a_claim(dialect: Dialect) -> None:
    assert dialect.resources <= DIALECTS.by_resource.keys()
    assert all(dialect.speaks(amounts) and dialect.claim(amounts) for amounts in dialect.examples)
    assert not dialect.units.keys() - dialect.resources
    assert not {*dialect.offered} - dialect.units.keys()


def test_an_unknown_name_enables_no_dialect() -> None:
    assert Dialects.named(["tuya", "nobody"]).resources == {names.TUYA_SGPU}
