from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names, quantity
from halfcard.claims import memory_share, whole_cards
from halfcard.dialects import Dialects
from halfcard.pod import requests as pod_requests
from halfcard.pod.requests import NOTHING, ContainerRequest, ResourceRequest, claims, hints, read_pod, shape_problems
from halfcard.problems import CORES, MIXED_CONTAINER, NOT_EQUAL, QUANTITY, SHARE_NEEDS_MEMORY, SMALL_CORES
from tests.builders import amounts, pod

DIALECTS: Final = Dialects()
CORE, MEMORY = names.VCUDA_CORE, names.VCUDA_MEMORY


def wish(limits: Mapping[str, Any] | None = None, requests: Mapping[str, Any] | None = None) -> ContainerRequest:
    both = pod().container(limits=amounts(**limits or {}), requests=amounts(**requests or {}))
    (asked,) = read_pod(both.read, DIALECTS)
    return asked.request


def codes(read: ContainerRequest) -> list[str]:
    return [problem.code for problem in read.problems]


SHARE: Final = {"core": 30, "memory": 20}


# --- both sides -------------------------------------------------------------------------------------------------------


def test_limits_alone_are_the_request() -> None:
    assert wish(SHARE).asks == (ResourceRequest(CORE, 30, limits="30"), ResourceRequest(MEMORY, 20, limits="20"))


def test_requests_alone_are_the_request() -> None:
    assert wish(requests=SHARE).asks == (
        ResourceRequest(CORE, 30, requests="30"),
        ResourceRequest(MEMORY, 20, requests="20"),
    )


def test_a_resource_may_be_in_limits_or_requests() -> None:
    read = wish({"core": 30}, {"memory": 20})
    assert read.asks == (ResourceRequest(CORE, 30, limits="30"), ResourceRequest(MEMORY, 20, requests="20"))
    assert read.claim == memory_share(5120, "tencent", cores_pct=30)


def test_equal_limits_and_requests_are_equal_in_any_spelling() -> None:
    read = wish({"core": "0.3", "memory": "5Gi"}, {"core": 30, "memory": "5000Mi"})
    assert read.problems == ()
    assert read.asks[0] == ResourceRequest(CORE, 30, limits="0.3", requests="30")
    assert (read.asks[1].amount, read.asks[1].written("limits"), read.asks[1].written("requests")) == (
        20,
        "5Gi",
        "5000Mi",
    )
    assert "5000Mi" in read.asks[1].note


def test_different_limits_and_requests_are_refused() -> None:
    read = wish(SHARE, {"core": 40, "memory": 20})
    (problem,) = read.problems
    assert problem.code == NOT_EQUAL.code
    assert problem.where == f'resources.requests["{CORE}"]'
    assert problem.got == "40"


def test_0_in_one_field_does_not_equal_more_in_the_other() -> None:
    assert codes(wish(SHARE, {"core": 0, "memory": 20})) == [NOT_EQUAL.code]


def test_a_mistake_that_the_api_server_copied_is_reported_once() -> None:
    (problem,) = wish({"core": "1.5"}, {"core": "1.5"}).problems
    assert (problem.code, problem.where) == (CORES.code, f'resources.limits["{CORE}"]')


def test_two_different_mistakes_are_both_reported() -> None:
    both = wish({"core": "1.5"}, {"core": "many"}).problems
    assert [(problem.code, problem.where.split("[")[0], problem.got) for problem in both] == [
        (CORES.code, "resources.limits", "1.5"),
        (QUANTITY.code, "resources.requests", "many"),
    ]


def test_a_mistake_is_reported_for_its_field() -> None:
    (problem,) = wish({"core": 30, "memory": 20}, {"core": "many"}).problems
    assert (problem.code, problem.where, problem.got) == (QUANTITY.code, f'resources.requests["{CORE}"]', "many")


# --- what makes a claim -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, {"cpu": 1, "memory.example/x": 3}], ids=["no resources", "other resources"])
def test_a_container_without_gpu_resources_requests_nothing(nothing: dict[str, Any] | None) -> None:
    (asked,) = read_pod(pod().container(limits=nothing).read, DIALECTS)
    assert asked.request == NOTHING


def test_an_amount_of_0_is_a_request_and_no_claim() -> None:
    read = wish({"core": 0, "memory": "0"})
    assert read.asks == (ResourceRequest(CORE, 0, limits="0"), ResourceRequest(MEMORY, 0, limits="0"))
    assert (read.claim, read.dialect, read.problems) == (None, None, ())


def test_yaml_numbers_are_read_as_they_are_spelled() -> None:
    assert wish({"core": 0.3, "memory": 5368709120}).claim == memory_share(5120, "tencent", cores_pct=30)


def test_blanks_around_an_amount_are_ignored() -> None:
    assert wish({"core": " 30 ", "memory": "20"}).claim == memory_share(5120, "tencent", cores_pct=30)


@pytest.mark.parametrize("text", ["", "abc", "1e", "5GB", "٣٠", "\x00", "1" * 5000])
def test_an_invalid_quantity_is_refused_in_its_written_form(text: str) -> None:
    (problem,) = wish({"core": text, "memory": 20}).problems
    assert (problem.code, problem.got) == (QUANTITY.code, text)


def test_rules_wait_until_the_amounts_can_be_read() -> None:
    unread, read = wish({"core": "1.5"}), wish({"core": 30})
    assert codes(unread) == [CORES.code]
    assert codes(read) == [SHARE_NEEDS_MEMORY.code]
    assert not unread.is_read and read.is_read


def test_hami_resources_without_a_number_of_cards_imply_one() -> None:
    read = wish({"gpumem": 3000})
    assert read.implied == (ResourceRequest(names.NVIDIA_GPU, 1),)
    assert read.claim is not None and read.claim.cards == 1


@pytest.mark.parametrize("cards", [0, 1, 2])
def test_a_written_number_of_cards_is_used(cards: int) -> None:
    assert wish({"gpu": cards, "gpumem": 3000}).implied == ()


def test_resources_of_two_dialects_make_no_claim() -> None:
    read = wish({**SHARE, "gpu": 1})
    assert codes(read) == [MIXED_CONTAINER.code]
    assert (read.claim, read.dialect) == (None, None)


# --- the whole pod ----------------------------------------------------------------------------------------------------


def test_every_container_is_read_with_its_path() -> None:
    many = pod().asks(**SHARE).asks().asks(core=100).init(core="0.5", memory="1Gi").sidecar(core=2, memory=1)
    asked = read_pod(many.read, DIALECTS)
    assert [(each.place.where, each.claim) for each in asked] == [
        ("spec.containers[0]", memory_share(5120, "tencent", cores_pct=30)),
        ("spec.containers[1]", None),
        ("spec.containers[2]", whole_cards(1, "tencent")),
        ("spec.initContainers[0]", memory_share(1024, "tencent", cores_pct=50)),
        ("spec.initContainers[1]", memory_share(256, "tencent", cores_pct=2)),
    ]
    assert claims(asked) == tuple(each.claim for each in asked if each.claim)


def test_all_problems_of_a_pod_are_reported_with_their_containers() -> None:
    found = shape_problems(read_pod(pod().asks(core="1.5").asks(**SHARE).init(core=30).read, DIALECTS))
    assert [(problem.code, problem.where) for problem in found] == [
        (CORES.code, f'spec.containers[0].resources.limits["{CORE}"]'),
        (SHARE_NEEDS_MEMORY.code, f'spec.initContainers[0].resources.limits["{MEMORY}"]'),
    ]


def test_a_small_number_of_cores_gives_a_warning_at_its_field() -> None:
    requesting = pod().asks(**SHARE).container(requests=amounts(core=3, memory=20))
    (hint,) = hints(read_pod(requesting.read, DIALECTS))
    assert (hint.code, hint.where) == (SMALL_CORES.code, f'spec.containers[1].resources.requests["{CORE}"]')
    assert hint.got == "3" and "300" in hint.fix


@pytest.mark.parametrize("spec", [{}, {"containers": []}, {"containers": None}, None])
def test_a_pod_without_containers_requests_nothing(spec: dict[str, Any] | None) -> None:
    empty = pod().specified(**(spec or {}))
    assert read_pod(empty.read, DIALECTS) == ()


# --- memory and speed -------------------------------------------------------------------------------------------------


def test_equal_requests_are_read_once() -> None:
    assert wish({"core": 37, "memory": 11}) is wish({"core": "37", "memory": "11"})


def test_other_dialects_do_not_share_the_cache() -> None:
    one = read_pod(pod().asks(core=37, memory=11).read, DIALECTS)[0].request
    assert read_pod(pod().asks(core=37, memory=11).read, Dialects.named(["nvidia"]))[0].request == NOTHING != one


@pytest.mark.parametrize("text", ["1" * 41, "0." + "0" * 4000 + "1", "x" * 100_000])
def test_huge_texts_are_read_and_not_cached(text: str) -> None:
    remembered = pod_requests._remembered_request.cache_info().currsize
    assert wish({"core": text, "memory": 20}).problems
    assert pod_requests._remembered_request.cache_info().currsize == remembered


@pytest.mark.parametrize("text", ["1" * 401, "0." + "0" * 4000 + "1", "x" * 100_000])
def test_no_text_over_the_bound_is_cached_as_a_quantity(text: str) -> None:
    quantity._parse.cache_clear()
    wish({"core": text})
    assert quantity._parse.cache_info().currsize == 0


values = (
    st.text(max_size=8) | st.sampled_from(["30", "0.3", "5Gi", "0", "1.5", "many", "100"]) | st.integers(-5, 10**10)
)
sides = st.dictionaries(st.sampled_from(["core", "memory", "gpu", "gpumem", "gpu_number", "cpu"]), values, max_size=4)


@given(sides, sides)
def test_any_amounts_give_a_claim_or_a_reason(limits: dict[str, Any], requests: dict[str, Any]) -> None:
    read = wish(limits, requests)
    if any(ask.amount for ask in read.asks) and read.claim is None and not read.problems:
        assert [ask.amount for ask in read.asks if ask.resource == names.NVIDIA_GPU] == [0]
    for problem in read.problems:
        assert problem.where.startswith("resources")
        assert problem.fix


@given(sides)
def test_limits_requests_or_both_make_the_same_claim(words: dict[str, Any]) -> None:
    limits, requests, both = wish(words), wish(None, words), wish(words, words)
    assert limits.claim == requests.claim == both.claim
    assert codes(limits) == codes(requests) == codes(both)
    assert [ask.amount for ask in limits.asks] == [ask.amount for ask in requests.asks]
    assert [ask.amount for ask in both.asks] == [ask.amount for ask in limits.asks]
