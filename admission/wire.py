"""AdmissionReview as bytes, and back: the only module that knows how the API server speaks.

Parsing is strict where JSON is vague (duplicate keys, lone surrogates, NaN, deep nesting): two readers of one
document must never see two documents.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import jiter
import msgspec

from halfcard.patches import as_json

from .review import Verdict

VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
MAX_BODY_BYTES: Final = 7 * 2**20
"""The API server takes objects up to 3 MiB, and an update carries two."""

_MAX_CAUSES: Final = 20
_encode = msgspec.json.Encoder().encode


class Malformed(Exception):
    """The caller broke the protocol; the text is a sentence for whoever reads its log."""


class Kind(msgspec.Struct, frozen=True):
    kind: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    username: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    operation: str = ""
    kind: Kind = Kind()
    sub_resource: str | None = None
    namespace: str | None = None
    name: str | None = None
    user_info: UserInfo = UserInfo()
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Request


def read(body: bytes) -> Review:
    """The review in the body.

    Raises:
        Malformed: it is none.
    """
    try:
        parsed = jiter.from_json(body, catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError as error:
        raise Malformed(f"the body is not valid JSON: {error}") from error
    try:
        review = msgspec.convert(parsed, Review)
    except msgspec.ValidationError as error:
        raise Malformed(f"the body does not have the shape of an AdmissionReview: {error}") from error
    if review.kind != "AdmissionReview" or review.api_version not in VERSIONS:
        got = f"{review.api_version[:80]} {review.kind[:80]}"
        raise Malformed(f"the body is no AdmissionReview: got {got!r}, expected {' or '.join(VERSIONS)}")
    return review


def answer(review: Review, verdict: Verdict) -> bytes:
    return _encode(
        {
            "apiVersion": review.api_version,
            "kind": "AdmissionReview",
            "response": {"uid": review.request.uid, "allowed": verdict.allowed} | _details(verdict),
        }
    )


def _details(verdict: Verdict) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if verdict.warnings:
        details["warnings"] = verdict.warnings
    if verdict.changes:
        details["patchType"] = "JSONPatch"
        details["patch"] = base64.b64encode(_encode(as_json(verdict.changes))).decode("ascii")
    if not verdict.allowed:
        details["status"] = _status(verdict)
    return details


def _status(verdict: Verdict) -> dict[str, Any]:
    causes = [
        {"reason": problem.code, "message": str(problem), "field": problem.where}
        for problem in verdict.problems[:_MAX_CAUSES]
    ]
    return {
        "status": "Failure",
        "message": verdict.message,
        "reason": "Forbidden",
        "code": 403,
        "details": {"causes": causes},
    }
