from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from admission.policy import AdmissionPolicy
from halfcard import names
from halfcard.cards import Card, Node
from halfcard.cluster_view import ClusterView
from halfcard.dialects import Dialects
from halfcard.pod.card_preferences import POLICIES
from halfcard.problems import Severity
from tests.builders import Json, container, gpu, pod_of

from ..judging import CORE, MEMORY, cards, codes, mutate, mutated, validate, warned_codes

TUYA_CORE, TUYA_MEMORY = names.TUYA + names.VCUDA_CORE_SUFFIX, names.TUYA + names.VCUDA_MEMORY_SUFFIX


def of(amounts: Json) -> Json:
    return container(amounts, dict(amounts))


# --- amounts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amounts", "wanted"),
    [
        ({CORE: "1", MEMORY: "1"}, []),
        ({CORE: "99", MEMORY: "1"}, []),
        ({CORE: "100"}, []),
        ({CORE: "200", MEMORY: "128"}, []),
        ({CORE: "30"}, ["HC006"]),
        ({CORE: "30", MEMORY: "0"}, ["HC006"]),
        ({MEMORY: "20"}, ["HC007"]),
        ({MEMORY: "20", CORE: "0"}, ["HC007"]),
        ({TUYA_MEMORY: "20"}, []),
        ({TUYA_CORE: "30"}, ["HC006"]),
        ({CORE: "101"}, ["HC002"]),
        ({CORE: "150", MEMORY: "20"}, ["HC002"]),
        ({CORE: "1.5", MEMORY: "20"}, ["HC002"]),
        ({CORE: "0.305", MEMORY: "20"}, ["HC002"]),
        ({CORE: "-1", MEMORY: "20"}, ["HC001"]),
        ({CORE: "4294967297", MEMORY: "20"}, ["HC001"]),
        ({CORE: "lots", MEMORY: "20"}, ["HC001"]),
        ({CORE: "", MEMORY: "20"}, ["HC001"]),
        ({CORE: "30", MEMORY: "1.5"}, ["HC003"]),
        ({CORE: "30", MEMORY: "-1Gi"}, ["HC003"]),
        ({CORE: "30", MEMORY: "300Ti"}, ["HC003"]),
        ({names.ALIYUN_GPU_MEM: "3"}, []),
        ({names.ALIYUN_GPU_MEM: "1.5"}, ["HC001"]),
        ({names.TUYA_SGPU: "2"}, []),
        ({names.VOLCANO_GPU_MEMORY: "2048"}, []),
        ({names.VOLCANO_GPU_MEMORY: "2048", names.VOLCANO_GPU_NUMBER: "1"}, ["HC012"]),
        ({names.NVIDIA_GPU: "1"}, []),
        ({names.NVIDIA_GPU: "1", names.NVIDIA_GPU_SHARED: "1"}, ["HC012"]),
        ({names.NVIDIA_GPU: "1", names.HAMI_GPUMEM: "3000", names.HAMI_GPUCORES: "100"}, []),
        ({names.NVIDIA_GPU: "1", names.HAMI_GPUMEM: "3000", names.HAMI_GPUMEM_PERCENTAGE: "50"}, ["HC012"]),
        ({names.NVIDIA_GPU: "1", names.HAMI_GPUCORES: "101"}, ["HC013"]),
        ({CORE: "30", MEMORY: "20", names.NVIDIA_GPU: "1"}, ["HC010"]),
        ({CORE: "30", TUYA_MEMORY: "20"}, ["HC010"]),
        ({CORE: "30", MEMORY: "20", names.NVIDIA_GPU: "0"}, []),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_amounts_that_cannot_work_are_refused_by_both_calls(amounts: Json, wanted: list[str], field: str) -> None:
    obj = pod_of(of(amounts)) if field == "containers" else pod_of(container(), init=[of(amounts)])
    for verdict in (mutate(obj), validate(obj)):
        assert codes(verdict) == wanted
        assert all(problem.where.startswith(f"spec.{field}[0].resources") for problem in verdict.problems)


@pytest.mark.parametrize(
    ("resource", "got", "nearest"),
    [
        (CORE, "1.5", ["100", "200"]),
        (CORE, "150", ["100", "200"]),
        (CORE, "101", ["100", "200"]),
        (CORE, "0.305", ["30", "31"]),
        (CORE, "0.995", ["99", "100"]),
        (MEMORY, "1.5", ["2"]),
        (MEMORY, "19500m", ["20"]),
    ],
)
def test_the_refusal_names_the_nearest_valid_values(resource: str, got: str, nearest: list[str]) -> None:
    (problem,) = mutate(pod_of(of({CORE: "30", MEMORY: "20", resource: got}))).problems
    assert problem.got == ("19.5" if got == "19500m" else got)
    assert problem.where.endswith(f'["{resource}"]')
    assert all(f" {value}" in f"{problem.fix} " for value in nearest)


@pytest.mark.parametrize(
    ("limits", "requests", "wanted"),
    [
        ({CORE: "30", MEMORY: "20"}, {CORE: "40", MEMORY: "20"}, ["HC004"]),
        ({CORE: "30", MEMORY: "20"}, {CORE: "0.4", MEMORY: "20"}, ["HC004"]),
        ({CORE: "30", MEMORY: "5Gi"}, {CORE: "30", MEMORY: "21"}, ["HC004"]),
        ({CORE: "0.3", MEMORY: "5Gi"}, {CORE: "30", MEMORY: "20"}, []),
        ({CORE: "30", MEMORY: "20"}, {CORE: "0", MEMORY: "20"}, ["HC004"]),
    ],
)
def test_requests_equal_limits_in_meaning(limits: Json, requests: Json, wanted: list[str]) -> None:
    assert codes(mutate(pod_of(container(limits, requests)))) == wanted


def test_all_problems_of_a_pod_are_reported_at_once() -> None:
    obj = pod_of(gpu("1.5"), gpu("30", None), init=[gpu(None, "20")], nodeName="n1")
    for verdict in (mutate(obj), validate(obj)):
        assert codes(verdict) == ["HC002", "HC006", "HC007", "HC026"]


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ({names.NVIDIA_GPU: "1"}, {names.NVIDIA_GPU: "1", names.HAMI_GPUMEM: "3000"}, ["HC011"]),
        ({names.NVIDIA_GPU: "1"}, {CORE: "30", MEMORY: "20"}, []),
        ({names.ALIYUN_GPU_MEM: "3"}, {CORE: "30", MEMORY: "20"}, []),
    ],
)
def test_some_dialects_may_be_mixed_in_different_containers(first: Json, second: Json, wanted: list[str]) -> None:
    assert codes(mutate(pod_of(of(first), of(second)))) == wanted


# --- what repairs left --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cores", "memory", "number"), [("0.3", "20", 1), ("30", "5Gi", 1), ("0.3", "5Gi", 2)])
def test_a_foreign_unit_is_refused_where_the_mutating_call_did_not_happen(cores: str, memory: str, number: int) -> None:
    problems = validate(pod_of(gpu(cores, memory))).problems
    assert [problem.code for problem in problems] == ["HC005"] * number


def test_problems_name_the_side_where_spellings_differ() -> None:
    (problem,) = validate(pod_of(container({CORE: "30", MEMORY: "20"}, {CORE: "0.3", MEMORY: "20"}))).problems
    assert (problem.code, problem.got) == ("HC005", "0.3")
    assert "requests" in problem.where
    assert "30" in problem.fix


def test_a_missing_number_of_hami_cards_is_refused_where_it_was_not_added() -> None:
    (problem,) = validate(pod_of(of({names.HAMI_GPUMEM: "3000"}))).problems
    assert problem.code == "HC005"
    assert names.NVIDIA_GPU in problem.fix


@pytest.mark.parametrize("cores", ["30", "30000m", "3e1", 30])
def test_every_spelling_of_a_whole_number_is_admitted(cores: Any) -> None:
    assert validate(pod_of(gpu(cores))).allowed


# --- memory of a card ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container_now", "refused", "warned"),
    [
        (gpu("30", "64"), [], []),
        (gpu("30", "65"), ["HC008"], []),
        (gpu("100", "33"), [], ["HC040"]),
        (gpu("200", "64"), [], []),
        (gpu("200", "65"), [], ["HC040"]),
        (gpu("200", "130"), [], ["HC040"]),
        (of({names.ALIYUN_GPU_MEM: "17"}), ["HC008"], []),
        (of({names.ALIYUN_GPU_MEM: "16"}), [], []),
        (of({names.VOLCANO_GPU_MEMORY: "16385"}), ["HC008"], []),
        (of({names.NVIDIA_GPU: "2", names.HAMI_GPUMEM: "16385"}), ["HC008"], []),
    ],
)
def test_a_share_larger_than_the_largest_card_is_refused_and_whole_cards_are_warned(
    container_now: Json, refused: list[str], warned: list[str]
) -> None:
    for verdict in (
        mutate(pod_of(container_now), cluster=cards(8192, 16384)),
        validate(pod_of(container_now), cluster=cards(8192, 16384)),
    ):
        assert codes(verdict) == refused
        assert warned_codes(verdict) == warned


LARGEST: Final = {
    "gpu-manager's units": (gpu("30", "65"), "use at most 16384 MiB a card (64 units of 256 MiB)"),
    "gpushare's GiB": (of({names.ALIYUN_GPU_MEM: "17"}), "use at most 16384 MiB a card (16 units of 1024 MiB)"),
    "MiB": (of({names.VOLCANO_GPU_MEMORY: "16385"}), "use at most 16384 MiB a card"),
}


@pytest.mark.parametrize(("container_now", "fix"), LARGEST.values(), ids=LARGEST)
def test_the_most_memory_of_a_card_is_named_in_the_unit_of_the_resource(container_now: Json, fix: str) -> None:
    (problem,) = validate(pod_of(container_now), cluster=cards(16384)).problems
    assert problem.fix == fix


def test_where_no_card_is_known_memory_is_not_checked() -> None:
    assert validate(pod_of(gpu("30", "100000"))).allowed


# --- node and scheduler -------------------------------------------------------------------------------------------


def test_a_pod_with_a_claim_may_not_name_its_node() -> None:
    (problem,) = validate(pod_of(gpu(), nodeName="n1")).problems
    assert (problem.code, problem.where, problem.got) == ("HC026", "spec.nodeName", "n1")
    assert validate(pod_of(container(), nodeName="n1")).allowed
    assert validate(pod_of(gpu("0", "0"), nodeName="n1")).allowed
    assert validate(pod_of(gpu(), nodeName="")).allowed


@pytest.mark.parametrize(
    ("container_now", "scheduler", "warned"),
    [
        (gpu(), "volcano", ["HC043"]),
        (gpu(), "default-scheduler", []),
        (gpu(), "", []),
        (gpu(), "ours", []),
        (container(), "volcano", []),
    ],
)
def test_a_scheduler_that_is_not_served_gets_a_warning(container_now: Json, scheduler: str, warned: list[str]) -> None:
    policy = AdmissionPolicy(schedulers=frozenset({"default-scheduler", "ours"}))
    verdict = validate(pod_of(container_now, schedulerName=scheduler), policy=policy)
    assert verdict.allowed
    assert warned_codes(verdict) == warned


# --- what people say about their cards ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "container_now", "wanted"),
    [
        *((policy, gpu(), []) for policy in POLICIES),
        ("binpacking", gpu(), ["HC014"]),
        ("Binpack", gpu("200", None), ["HC014"]),
        ("", gpu(), ["HC014"]),
        ("binpacking", container(), []),
        ("binpacking", gpu("0", "0"), []),
    ],
)
def test_an_unknown_policy_is_refused_where_cards_are_chosen(
    policy: str, container_now: Json, wanted: list[str]
) -> None:
    assert codes(validate(pod_of(container_now, annotations={names.ASK_POLICY: policy}))) == wanted


def test_a_misspelled_policy_is_refused_with_the_names_of_all() -> None:
    (problem,) = validate(pod_of(gpu(), annotations={names.ASK_POLICY: "tight"})).problems
    assert (problem.where, problem.got) == (f'metadata.annotations["{names.ASK_POLICY}"]', "tight")
    assert all(policy in problem.fix for policy in POLICIES)


# --- severity -----------------------------------------------------------------------------------------------------

BROKEN: list[tuple[str, Json]] = [
    ("HC002", pod_of(gpu("150"))),
    ("HC006", pod_of(gpu("30", None))),
    ("HC007", pod_of(gpu(None, "20"))),
    ("HC009", pod_of(gpu(), annotations={names.TENCENT + names.CORE_LIMIT_SUFFIX: "5"})),
    ("HC014", pod_of(gpu(), annotations={names.ASK_POLICY: "tight"})),
    ("HC020", pod_of(gpu(), annotations={"tencent.com/predicate-node": "n"})),
    ("HC021", pod_of(container(env=[{"name": names.VISIBLE_DEVICES, "value": "all"}]))),
    ("HC022", pod_of(gpu(env=[{"name": "LD_PRELOAD", "value": "/x.so"}]))),
    ("HC024", pod_of(container(), volumes=[{"name": "v", "hostPath": {"path": "/dev/nvidia0"}}])),
    ("HC025", pod_of(gpu(), hostPID=True)),
    ("HC026", pod_of(gpu(), nodeName="n1")),
    ("HC042", pod_of(gpu("100", None), hostPID=True)),
    ("HC043", pod_of(gpu(), schedulerName="other")),
]


@pytest.mark.parametrize(("code", "obj"), BROKEN, ids=[code for code, _ in BROKEN])
def test_the_severity_of_each_rule_is_a_setting(code: str, obj: Json) -> None:
    for severity, refused, warned in (
        (Severity.DENY, [code], []),
        (Severity.WARN, [], [code]),
        (Severity.OFF, [], []),
    ):
        policy = AdmissionPolicy(severities={code: severity})
        for verdict in (mutate(obj, policy=policy), validate(obj, policy=policy)):
            assert codes(verdict) == refused
            assert warned_codes(verdict) == warned
            assert all(len(line) <= 120 for line in verdict.warnings)


def test_a_disabled_dialect_is_not_judged() -> None:
    policy = AdmissionPolicy(dialects=Dialects.named(["nvidia"]))
    assert mutate(pod_of(gpu("1.5")), policy=policy).changes == ()
    assert validate(pod_of(gpu("1.5"), nodeName="n"), policy=policy).allowed


def test_a_repaired_pod_breaks_no_rule() -> None:
    obj = pod_of(gpu("0.3", "5Gi"), gpu("200", None), container(), init=[container({names.HAMI_GPUMEM: "3000"})])
    assert validate(mutated(obj)).problems == ()


# --- as many cards as a node has ------------------------------------------------------------------------------------

EIGHT: Final = tuple(Card(index, "A100", 40960) for index in range(8))
NODES: Final = ClusterView(nodes=(Node("large", EIGHT), Node("small", EIGHT[:2]), Node("none")))
MIXED: Final = replace(NODES, driver_nodes=frozenset({"none"}))
SLICED: Final = ClusterView(nodes=(Node("n", tuple(replace(each, replicas=2) for each in EIGHT), names.NVIDIA_GPU),))
CARDS: Final[dict[str, tuple[Json, ClusterView, list[str]]]] = {
    "all of the largest node": (pod_of(of({names.NVIDIA_GPU: "8"})), NODES, []),
    "more than that": (pod_of(of({names.NVIDIA_GPU: "16"})), NODES, ["HC048"]),
    "in per cent": (pod_of(of({CORE: "900"})), NODES, ["HC048"]),
    "a half of each of nine": (pod_of(of({names.TUYA_SGPU: "9"})), NODES, ["HC048"]),
    "containers together": (pod_of(of({names.NVIDIA_GPU: "5"}), of({names.NVIDIA_GPU: "4"})), NODES, ["HC048"]),
    "shares of one card": (pod_of(*(of({CORE: "30", MEMORY: "1"}) for _ in range(9))), NODES, []),
    "time slices": (pod_of(of({names.NVIDIA_GPU_SHARED: "16"})), NODES, []),
    "time slices that are offered as cards": (pod_of(of({names.NVIDIA_GPU: "16"})), SLICED, []),
    "whole cards that a driver may have": (pod_of(of({names.NVIDIA_GPU: "16"})), MIXED, []),
    "cards of gpu-manager, which a driver has not": (pod_of(of({CORE: "900"})), MIXED, ["HC048"]),
    "a model, which only Halfcard knows": (
        pod_of(of({names.NVIDIA_GPU: "16"}), annotations={names.ASK_MODEL: "T4"}),
        MIXED,
        ["HC048"],
    ),
    "no node known": (pod_of(of({names.NVIDIA_GPU: "16"})), ClusterView(nodes=(Node("none"),)), []),
}


@pytest.mark.parametrize(("pod", "cluster", "wanted"), CARDS.values(), ids=CARDS.keys())
def test_a_pod_with_more_cards_than_any_node_hears_that_it_waits(
    pod: Json, cluster: ClusterView, wanted: list[str]
) -> None:
    verdict = mutate(pod, cluster=cluster)
    assert (verdict.allowed, warned_codes(verdict)) == (True, wanted)


def test_the_warning_names_the_most_cards_of_a_node() -> None:
    (warning,) = mutate(pod_of(of({names.NVIDIA_GPU: "16"})), cluster=NODES).warnings
    assert warning.endswith("no node has so many cards; use at most 8 in a pod, or it waits for a larger node")
