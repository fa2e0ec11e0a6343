"""Decodes AdmissionReviews, and encodes verdicts as their answers.

Parsing is strict where JSON is ambiguous (duplicate keys, lone surrogates, NaN, deep nesting): every reader of a
document must see the same. A document that is encoded again to the same bytes is not ambiguous.
"""

from __future__ import annotations

import gc
from typing import Any, Final

import jiter
import msgspec

from halfcard.patches import as_json

from .verdict import Verdict

VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
_MAX_CAUSES: Final = 20
_LARGE_TREE_BYTES: Final = 128 * 2**10
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class MalformedReview(Exception):
    """The caller broke the protocol; the text is for the caller's log."""


class ObjectKind(msgspec.Struct, frozen=True):
    kind: str = ""
    group: str = ""


class UserInfo(msgspec.Struct, frozen=True):
    username: str = ""


class ReviewRequest(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    operation: str = ""
    kind: ObjectKind = ObjectKind()
    sub_resource: str | None = None
    namespace: str | None = None
    name: str | None = None
    user_info: UserInfo = UserInfo()
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool | None = None


class Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: ReviewRequest


class _Response(msgspec.Struct, rename="camel", omit_defaults=True):
    """The response of a review; empty fields are omitted."""

    uid: str
    allowed: bool
    warnings: tuple[str, ...] = ()
    patch_type: str | None = None
    patch: bytes | None = None
    """JSON; bytes are written as base64."""
    status: dict[str, Any] | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    response: _Response
    kind: str = "AdmissionReview"


def read(body: bytes) -> Review:
    """Returns the review in the body.

    Raises:
        MalformedReview: the body is not an AdmissionReview.
    """
    try:
        review = msgspec.convert(_tree(body), Review)
    except msgspec.ValidationError as error:
        raise MalformedReview(f"the body does not have the shape of an AdmissionReview: {error}") from error
    if review.kind != "AdmissionReview" or review.api_version not in VERSIONS:
        got = f"{review.api_version[:80]} {review.kind[:80]}"
        raise MalformedReview(f"the body is not an AdmissionReview: got {got!r}, expected {' or '.join(VERSIONS)}")
    return review


def _tree(body: bytes) -> Any:
    """Parses without garbage collection, which visits a large tree again and again while it grows."""
    if len(body) < _LARGE_TREE_BYTES:
        return _parsed(body)
    gc.disable()
    try:
        return _parsed(body)
    finally:
        gc.enable()


def _parsed(body: bytes) -> Any:
    """Parses with the fast reader, which overlooks duplicate keys. If its result, encoded again, differs from the body,
    the strict reader parses it; at no time there are two trees.
    """
    try:
        parsed = _decode(body)
        if _as_go_writes(parsed) == body.rstrip():
            return parsed
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # the strict reader names the mistake
    parsed = None
    try:
        return jiter.from_json(body, catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError as error:
        raise MalformedReview(f"the body is not valid JSON: {error}") from error


def _as_go_writes(value: Any) -> bytes:
    """Encodes JSON like the API server: without spaces between tokens, and safe within HTML."""
    return _encode(value).replace(b"<", rb"\u003c").replace(b">", rb"\u003e").replace(b"&", rb"\u0026")


def answer(review: Review, verdict: Verdict) -> bytes:
    response = _Response(
        review.request.uid,
        verdict.allowed,
        verdict.warnings,
        patch_type="JSONPatch" if verdict.changes else None,
        patch=_encode(as_json(verdict.changes)) if verdict.changes else None,
        status=None if verdict.allowed else _status(verdict),
    )
    return _encode(_Answer(review.api_version, response))


def _status(verdict: Verdict) -> dict[str, Any]:
    """Returns the status of a refusal; where a retry may succeed, it makes clients retry by themselves."""
    if verdict.no_room is not None and verdict.no_room.retry_s:
        reason, code = "TooManyRequests", 429
        details: dict[str, Any] = {"retryAfterSeconds": verdict.no_room.retry_s}
    else:
        reason, code = "Forbidden", 403
        shown = verdict.problems[:_MAX_CAUSES]
        details = {"causes": [{"reason": each.code, "message": str(each), "field": each.shown_where} for each in shown]}
    return {"status": "Failure", "message": verdict.message, "reason": reason, "code": code, "details": details}
