"""Calls of the scheduler and their answers: in both forms, at every path, and malformed ones."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halfcard import names
from tests.admission.asgi import hung_up
from tests.builders import PodBuilder, pod

from ..populated import node, state_of, stored, uncounted
from ..scheduler import SHARE, Extender, Json, binding, by_name, in_full, sent, small_cluster

FILTERS = [names.FILTER_PATH, names.GPU_ADMISSION_FILTER_PATH, names.GPUSHARE_FILTER_PATH]
BINDS = [names.BIND_PATH, names.GPUSHARE_BIND_PATH]
VERBS = [*FILTERS, names.PRIORITIZE_PATH, *BINDS, names.PREEMPT_PATH]


@pytest.fixture
def extender() -> Extender:
    return Extender(small_cluster())


# --- filter -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILTERS)
def test_filter_returns_the_nodes_that_fit_and_one_reason_for_each_other_node(extender: Extender, path: str) -> None:
    answer = extender.post(path, by_name(SHARE, ["n2", "n3", "n1", "n9"]))
    assert answer == {
        "Nodes": None,
        "NodeNames": ["n2", "n1"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"n3": "no GPU known to Halfcard", "n9": "no GPU known to Halfcard"},
        "Error": "",
    }


def test_a_claim_of_60_does_not_fit_on_two_cards_with_30_free(extender: Extender) -> None:
    answer = extender.filter(pod("asking").asks(core="60", memory="8"))
    assert answer["NodeNames"] == ["n2"]
    assert answer["FailedAndUnresolvableNodes"] == {"n1": "no card has 60 per cent free"}


def test_a_call_with_node_objects_gets_the_same_objects_back(extender: Extender) -> None:
    objects = [node(name, 2) | {"kept": {"as": ["it", 1.50, "came"]}} for name in ("n1", "n2")]
    answer = extender.post(names.FILTER_PATH, in_full(pod("asking").asks(core="60", memory="8"), objects))
    assert answer["NodeNames"] is None
    assert answer["Nodes"]["items"] == [objects[1]]
    assert [*answer["FailedAndUnresolvableNodes"]] == ["n1"]


def test_a_node_that_the_watch_has_not_shown_is_judged_by_its_object(extender: Extender) -> None:
    objects = [node("new", 1), node("empty", 0), {"metadata": {"name": "odd", "annotations": {names.INVENTORY: "?"}}}]
    answer = extender.post(names.FILTER_PATH, in_full(SHARE, objects))
    assert [each["metadata"]["name"] for each in answer["Nodes"]["items"]] == ["new"]
    assert answer["FailedAndUnresolvableNodes"] == {
        "empty": "no GPU known to Halfcard",
        "odd": "no GPU known to Halfcard",
    }


def test_the_answer_about_an_unknown_node_is_not_cached(extender: Extender) -> None:
    known = ["n1", "n2", "n3"]
    before = extender.post(names.FILTER_PATH, by_name(SHARE, known))
    both = extender.post(names.FILTER_PATH, in_full(SHARE, [node("new", 0), *(node(name, 2) for name in known)]))
    assert both["FailedAndUnresolvableNodes"] == {"n3": "no GPU known to Halfcard", "new": "no GPU known to Halfcard"}
    assert extender.post(names.FILTER_PATH, by_name(SHARE, known)) == before


def test_keys_in_lower_case_are_accepted(extender: Extender) -> None:
    by_names = {"pod": sent(SHARE), "nodenames": ["n1", "n3"]}
    assert extender.post(names.FILTER_PATH, by_names)["NodeNames"] == ["n1"]
    full = {"pod": sent(SHARE), "nodes": {"items": [node("n2", 2)]}}
    assert len(extender.post(names.FILTER_PATH, full)["Nodes"]["items"]) == 1


def test_a_pod_without_a_claim_fits_everywhere(extender: Extender) -> None:
    answer = extender.filter(pod("plain").asks(cpu="1"), ["n1", "n9"], uid="")
    assert answer["NodeNames"] == ["n1", "n9"]
    assert answer["Error"] == ""


def test_equal_nodes_get_the_same_reason() -> None:
    """kube-scheduler counts equal texts and writes them into the pod."""
    nodes = [node(f"n{number}", 1 + number % 3) for number in range(60)]
    pods = [
        stored(pod(f"p{number}").asks(core=str(5 + number), memory=str(1 + number % 60)), on=f"n{number}", cards=["0"])
        for number in range(60)
    ]
    extender = Extender(state_of(nodes, pods))
    for words in ({"core": "97", "memory": "60"}, {"core": "400"}, {"sgpu": "4"}, {"gpu_mem": "17"}):
        failed = extender.filter(pod("asking").asks(**words), [f"n{number}" for number in range(60)])
        assert 1 <= len(set(failed["FailedAndUnresolvableNodes"].values())) <= 10


# --- pods that cannot be placed anywhere ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asking", "metadata", "sentence"),
    [
        (pod("asking").asks(core="150", memory="1"), {}, "multiple of 100"),
        (pod("asking").asks(core=str(2**63), memory="1"), {}, "2147483647"),
        (pod("asking").asks(core="9" * 40, memory="1"), {}, "2147483647"),
        (SHARE, {"uid": ""}, "metadata.uid"),
        (SHARE, {"annotations": {names.PLACEMENT: "{}"}}, names.PLACEMENT),
        (SHARE, {"annotations": {names.ALIYUN_INDEX: "0"}}, names.ALIYUN_INDEX),
    ],
)
def test_the_error_says_why_the_pod_cannot_be_placed(
    extender: Extender, asking: PodBuilder, metadata: Json, sentence: str
) -> None:
    answer = extender.filter(asking, **metadata)
    assert sentence in answer["Error"]
    assert answer["NodeNames"] is None


def test_a_fence_is_not_a_forged_record(extender: Extender) -> None:
    assert extender.filter(annotations={names.FENCE: "x-1"})["NodeNames"] == ["n1", "n2"]


# --- prioritize -------------------------------------------------------------------------------------------------------


def test_one_node_scores_10_and_all_others_at_most_9(extender: Extender) -> None:
    answer = extender.post(names.PRIORITIZE_PATH, by_name(SHARE, ["n2", "n1", "n3", "n9"]))
    assert [each["Host"] for each in answer] == ["n2", "n1", "n3", "n9"]
    scores = sorted(each["Score"] for each in answer)
    assert scores[-1] == 10
    assert 0 <= scores[0] <= scores[-2] <= 9


def test_all_nodes_score_alike_for_a_pod_without_a_claim(extender: Extender) -> None:
    answer = extender.post(names.PRIORITIZE_PATH, by_name(pod("plain").asks(cpu="1"), ["n1", "n2"]))
    assert [each["Score"] for each in answer] == [0, 0]


# --- preempt ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "victims",
    [
        {"NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "c"}], "NumPDBViolations": 1}}},
        {"NodeNameToVictims": {"n2": {"Pods": [{"metadata": {"uid": "c"}}], "NumPDBViolations": 1}}},
    ],
)
def test_victims_are_read_in_both_spellings(extender: Extender, victims: Json) -> None:
    asking = sent(pod("asking").asks(core="200"))
    asking["spec"]["priority"] = 9
    answer = extender.post(names.PREEMPT_PATH, {"Pod": asking} | victims)
    assert answer == {"NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "c"}], "NumPDBViolations": 1}}}


def test_a_node_where_no_eviction_helps_is_dropped(extender: Extender) -> None:
    victims = {"NodeNameToMetaVictims": {name: {"Pods": [], "NumPDBViolations": 0} for name in ("n3", "n9")}}
    assert extender.post(names.PREEMPT_PATH, {"Pod": sent(SHARE)} | victims) == {"NodeNameToMetaVictims": {}}


def test_no_victims_while_the_quotas_of_the_pod_are_unknown() -> None:
    waiting = Extender(small_cluster(), budgets=uncounted())
    victims = {"NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "c"}], "NumPDBViolations": 0}}}
    assert waiting.post(names.PREEMPT_PATH, {"Pod": sent(SHARE)} | victims) == {"NodeNameToMetaVictims": {}}
    assert "quota usage is still being initialised" in waiting.filter()["Error"]


# --- who may ask, and when --------------------------------------------------------------------------------------------


def test_calls_are_declined_until_nodes_and_pods_are_known(extender: Extender) -> None:
    extender.is_ready = False
    assert "still reading" in extender.filter()["Error"]
    assert "still reading" in extender.post(names.BIND_PATH, binding())["Error"]
    assert extender.post(names.PRIORITIZE_PATH, by_name(SHARE, ["n1"])) == []
    assert extender.post(names.PREEMPT_PATH, {"Pod": sent(SHARE)}) == {"NodeNameToMetaVictims": {}}


@pytest.mark.parametrize("path", BINDS)
def test_a_bind_without_a_leader_fails_with_a_reason(extender: Extender, path: str) -> None:
    assert "no replica of Halfcard's extender is the leader" in extender.post(path, binding())["Error"]


# --- malformed calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", VERBS)
@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"null", b"[]", b"{", b"\xff\xfe", b'{"Pod":null}', b'{"Pod":{}}', b'{"Pod":[],"NodeNames":["n1"]}',
     b'{"Pod":{},"Nodes":null,"NodeNames":null}', b'{"Pod":{},"Nodes":{"items":null}}', b"[" * 100_000,
     b'{"Pod":{},"NodeNames":[1]}', b'{"Pod":{},"Nodes":{"items":[7]}}', b'{"PodName":7}', b'{"PodName":"a"}'],
    ids=lambda body: repr(body[:40]),
)  # fmt: skip
def test_a_malformed_body_is_answered_with_a_sentence(extender: Extender, path: str, body: bytes) -> None:
    answer = extender.post(path, body)
    if path in (*FILTERS, *BINDS):
        assert len(answer["Error"]) > 20
    assert '"bug"' not in extender.said.getvalue()


@pytest.mark.parametrize("path", FILTERS[:1] + BINDS[:1])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"method": "GET"}, "use POST, not GET"),
        ({"headers": (("content-type", "text/plain"),)}, "send Content-Type: application/json"),
        ({"headers": ()}, "send Content-Type: application/json"),
        ({"headers": (("content-type", "application/json"), ("content-length", "9" * 12))}, "larger than"),
    ],
)
def test_a_request_that_is_no_call_is_answered_with_status_200(
    extender: Extender, path: str, words: dict[str, Any], sentence: str
) -> None:
    answer = extender.ask(path, b"{}", **words)
    assert answer.status == 200
    assert sentence in json.loads(answer.body)["Error"]


def test_a_content_type_may_name_a_charset(extender: Extender) -> None:
    body = json.dumps(by_name(SHARE, ["n1"])).encode()
    answer = extender.ask(names.FILTER_PATH, body, headers=(("content-type", "application/json; charset=UTF-8"),))
    assert json.loads(answer.body)["NodeNames"] == ["n1"]


def test_a_caller_that_disconnects_is_not_counted_as_a_bug(extender: Extender) -> None:
    assert "the caller disconnected" in json.loads(hung_up(extender.app, names.FILTER_PATH).body)["Error"]
    assert '"bug"' not in extender.said.getvalue()


def test_a_body_of_ten_megabytes_is_answered(extender: Extender) -> None:
    objects = [node("n1", 2) | {"padding": "x" * 100_000} for _ in range(100)]
    assert len(extender.post(names.FILTER_PATH, in_full(SHARE, objects))["Nodes"]["items"]) == 100


# --- laws -------------------------------------------------------------------------------------------------------------

_ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, 2**63, 10**40, 1e308, "", "x" * 5000, "\x00", "\u202e", "💥", "-1", "1e9", "NaN", [], {},
     [[]], [None], {"": None}]
)  # fmt: skip
_META = {"n1": {"Pods": [{"UID": "a"}], "NumPDBViolations": 0}}
_WHOLE = {"n1": {"Pods": [sent(SHARE)], "NumPDBViolations": 0}}
_INIT = pod("asking").asks(core="50", memory="8").init(core="10", memory="1")
_VALID: list[tuple[str, Json]] = [
    (names.FILTER_PATH, by_name(SHARE, ["n1", "n2"], annotations={names.FENCE: "x", names.ASK_POLICY: "spread"})),
    (names.FILTER_PATH, in_full(_INIT, [node("n1", 2), node("new", 1)])),
    (names.PRIORITIZE_PATH, by_name(pod("asking").asks(sgpu="2"), ["n1", "n2"])),
    (names.BIND_PATH, binding()),
    (names.PREEMPT_PATH, {"Pod": sent(SHARE), "NodeNameToMetaVictims": _META}),
    (names.PREEMPT_PATH, {"Pod": sent(SHARE), "NodeNameToVictims": _WHOLE}),
]


def _places(found: Any) -> list[tuple[Any, Any]]:
    keys = [*found] if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ()
    return [(found, key) for key in keys] + [place for key in keys for place in _places(found[key])]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    path, valid = draw(st.sampled_from(_VALID))
    body = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(1, 3))):
        parent, key = draw(st.sampled_from(_places(body)))
        parent[key] = copy.deepcopy(draw(_ODD))
        if not _places(body):
            break
    text = json.dumps(body).encode()
    cut = draw(st.just(len(text)) | st.integers(0, len(text)))
    return path, text[:cut]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(call=mutated())
def test_every_body_gets_an_answer(extender: Extender, call: tuple[str, bytes]) -> None:
    answer = extender.post(*call)
    assert isinstance(answer, dict | list)
    assert '"bug"' not in extender.said.getvalue()
