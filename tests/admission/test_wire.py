from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission import wire
from admission.verdict import Verdict
from halfcard.patches import PatchOperation
from halfcard.problems import CORES
from tests.builders import Json


def review(**request: Any) -> Json:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "705ab4f5", **request},
    }


def read(obj: Any) -> wire.Review:
    return wire.read(json.dumps(obj).encode())


def response(verdict: Verdict, obj: Json | None = None) -> Json:
    answer: Json = json.loads(wire.answer(read(obj or review()), verdict))
    result: Json = answer["response"]
    return result


# --- reading ------------------------------------------------------------------------------------------------------


def test_known_fields_are_read_and_all_others_are_skipped() -> None:
    request = read(
        review(
            operation="UPDATE",
            kind={"group": "", "version": "v1", "kind": "Pod"},
            subResource="status",
            namespace="a",
            name="p",
            userInfo={"username": "u", "groups": ["g"], "extra": {}},
            object={"x": {"y": [1, None, "z"]}},
            oldObject=None,
            dryRun=True,
            options={"anything": 1},
        )
    ).request
    assert (request.operation, request.kind.kind, request.sub_resource) == ("UPDATE", "Pod", "status")
    assert (request.namespace, request.name, request.user_info.username) == ("a", "p", "u")
    assert request.object == {"x": {"y": [1, None, "z"]}}
    assert request.old_object is None


BROKEN: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("blank", b" \n"),
    ("truncated", json.dumps(review()).encode()[:-3]),
    ("bom", b"\xef\xbb\xbf" + json.dumps(review()).encode()),
    ("utf-16", json.dumps(review()).encode("utf-16")),
    ("trailing", json.dumps(review()).encode() + b"x"),
    ("nan", json.dumps(review(object={"a": float("nan")})).encode()),
    ("infinity", json.dumps(review(object={"a": float("inf")})).encode()),
    ("nested lists", b"[" * 100_000),
    ("nested objects", b'{"a":' * 100_000),
    ("nested within", json.dumps(review(object={"a": 1})).encode().replace(b"1}}", b"[" * 100_000)),
    ("duplicate key", b'{"kind":"AdmissionReview","kind":"AdmissionReview"}'),
    ("duplicate deep", json.dumps(review(object=0)).encode().replace(b"0}", b'{"a":{"b":1,"\\u0062":2}}}')),
    ("lone surrogate", json.dumps(review(object=0)).encode().replace(b"0}", b'{"a":"\\ud800"}}')),
    ("surrogate key", json.dumps(review(object=0)).encode().replace(b"0}", b'{"\\udfff":1}}')),
    ("encoded surrogate", json.dumps(review(object=0)).encode().replace(b"0}", b'{"a":"\xed\xa0\x80"}}')),
    ("not utf-8", json.dumps(review(object=0)).encode().replace(b"0}", b'{"a":"\xff"}}')),
    ("control character", json.dumps(review(object=0)).encode().replace(b"0}", b'{"a":"\x01"}}')),
    ("long number", json.dumps(review(object=0)).encode().replace(b"0}", b'{"a":' + b"9" * 5000 + b"}}")),
    ("null", b"null"),
    ("list", b"[]"),
    ("number", b"1"),
    ("no request", b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}'),
    ("null request", json.dumps({**review(), "request": None}).encode()),
    ("no uid", json.dumps({**review(), "request": {}}).encode()),
    ("uid of wrong type", json.dumps(review(uid=1)).encode()),
    ("kind of wrong type", json.dumps(review(kind="Pod")).encode()),
    ("object of wrong type", json.dumps(review(object=[])).encode()),
    ("object is text", json.dumps(review(object="pod")).encode()),
    ("user of wrong type", json.dumps(review(userInfo=[])).encode()),
    ("other kind", json.dumps({**review(), "kind": "Pod"}).encode()),
    ("other version", json.dumps({**review(), "apiVersion": "admission.k8s.io/v2"}).encode()),
    ("yaml", b"kind: AdmissionReview"),
]


@pytest.mark.parametrize("body", [body for _, body in BROKEN], ids=[name for name, _ in BROKEN])
def test_a_body_that_is_not_a_review_is_refused_with_a_sentence(body: bytes) -> None:
    with pytest.raises(wire.MalformedReview, match="the body"):
        wire.read(body)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "123456789012345678901234567890", "1.5e-30"])
def test_unusual_numbers_in_unknown_fields_are_accepted(number: str) -> None:
    body = json.dumps(review(object={"a": "N"})).replace('"N"', number).encode()
    assert wire.read(body).request.uid == "705ab4f5"


def compact(obj: Any) -> bytes:
    return json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode()


def as_go_writes(obj: Any) -> bytes:
    """Encodes like the API server, with a newline at the end."""
    return compact(obj).replace(b"<", rb"\u003c").replace(b">", rb"\u003e").replace(b"&", rb"\u0026") + b"\n"


ANY_OBJECT = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
        lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
        max_leaves=25,
    ),
)


@given(ANY_OBJECT)
def test_the_spelling_of_json_does_not_change_an_object(obj: Json) -> None:
    whole = review(object=obj)
    for body in (as_go_writes(whole), compact(whole), json.dumps(whole, indent=1).encode()):
        assert wire.read(body).request.object == obj


@pytest.mark.parametrize("twice", [b'"a":1,"a":1', b'"a":1,"a":2', b'"a":{},"b":{"c":1,"c":1}', b'"a":1,"\\u0061":1'])
def test_a_duplicate_key_is_refused_in_any_spelling(twice: bytes) -> None:
    body = compact(review(object={"here": 0})).replace(b'"here":0', twice)
    with pytest.raises(wire.MalformedReview, match=r"[Dd]uplicate key"):
        wire.read(body)


# --- answering ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_the_answer_has_version_and_uid_of_the_review(version: str) -> None:
    answer = json.loads(wire.answer(read({**review(), "apiVersion": version}), Verdict()))
    assert answer == {
        "apiVersion": version,
        "kind": "AdmissionReview",
        "response": {"uid": "705ab4f5", "allowed": True},
    }


def test_only_a_verdict_with_changes_has_a_patch() -> None:
    changes = (
        PatchOperation("add", ("metadata", "annotations", "a/b~c"), "d"),
        PatchOperation("remove", ("spec", "x", 0)),
    )
    patched = response(Verdict(changes=changes))
    assert patched["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(patched["patch"], validate=True)) == [
        {"op": "add", "path": "/metadata/annotations/a~1b~0c", "value": "d"},
        {"op": "remove", "path": "/spec/x/0"},
    ]
    assert {"patch", "patchType", "warnings", "status"}.isdisjoint(response(Verdict()))


def test_a_refusal_is_forbidden_and_names_every_cause() -> None:
    problems = (CORES.broken("spec.a", "150", "use 100"), CORES.broken("spec.b", "250", "use 200"))
    verdict = Verdict(problems, ("careful",))
    refused = response(verdict)
    assert refused["allowed"] is False
    assert refused["warnings"] == ["careful"]
    status = refused["status"]
    assert (status["code"], status["reason"], status["message"]) == (403, "Forbidden", verdict.message)
    assert [(cause["reason"], cause["field"]) for cause in status["details"]["causes"]] == [
        ("HC002", "spec.a"),
        ("HC002", "spec.b"),
    ]
    assert all("use" in cause["message"] for cause in status["details"]["causes"])


def test_a_pod_with_thousands_of_problems_gets_a_short_answer() -> None:
    problems = tuple(CORES.broken(f"spec.containers[{n}]", "150", "use 100") for n in range(5000))
    assert len(wire.answer(read(review()), Verdict(problems))) < 10_000
