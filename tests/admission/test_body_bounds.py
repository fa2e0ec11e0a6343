from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Final

import pytest

from admission import wire
from admission.entry.body_bounds import MAX_BODY_BYTES, MAX_OBJECT_BYTES, check_cost
from bench import reviews
from serving.body_density import BYTES_PER_VALUE
from serving.request_body import RefusedRequest

POD: Final = json.dumps(reviews.pod(), separators=(",", ":")).encode()
HEAD: Final = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1",'


def review(inside: bytes, operation: str = "UPDATE") -> bytes:
    return HEAD + b'"operation":"%s","object":{"a":[%s1]}}}' % (operation.encode(), inside)


def cost_refused(body: bytes) -> str:
    try:
        check_cost(body)
    except RefusedRequest as refused:
        return f"{refused.status} {refused}"
    return ""


def repeated(part: bytes) -> Callable[[int], bytes]:
    return lambda size: review(part * (size // len(part)))


def keys(size: int) -> bytes:
    """Keys that differ, so that none is stored once for all."""
    return review(b"{%s}," % b",".join(b'"%06x":1' % number for number in range(size // 11)))


DENSE: Final[dict[str, Callable[[int], bytes]]] = {
    "empty lists": repeated(b"[],"),
    "nested lists": repeated(b"[[[[[]]]]],"),
    "empty objects": repeated(b"{},"),
    "managed fields": repeated(b'{"f:name":{},"f:value":{}},'),
    "short texts": repeated(b'"a",'),
    "numbers": repeated(b"1000,"),
    "variables": repeated(b'{"name":"FOO_BAR","value":"some"},'),
    "keys": keys,
    "pods": repeated(POD + b","),
    "a text of wide characters": repeated(b'"' + b"x" * 60 + "💥".encode() + b'",'),
}


@cache
def largest(kind: str) -> bytes:
    """Returns about the largest body of a kind that may be parsed."""
    sizes = [int(MAX_BODY_BYTES / 1.25**step) - 200 for step in range(20)]
    return next(body for body in map(DENSE[kind], sizes) if not cost_refused(body))


@pytest.mark.parametrize("kind", DENSE)
def test_what_may_be_parsed_costs_at_most_eight_times_its_size_or_24_mb(kind: str) -> None:
    body = largest(kind)
    tracemalloc.start()
    try:
        wire.read(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < max(8 * len(body), 24 * 2**20)


def test_the_refusal_names_what_was_sent_and_what_may_be() -> None:
    body = review(b"[]," * 2**20)
    most = len(body) // BYTES_PER_VALUE
    assert re.search(rf"^413 .* about [0-9]{{7}} values; one of {len(body)} bytes may have {most}$", cost_refused(body))


@pytest.mark.parametrize("pods", [1, 100, 1000])
def test_objects_as_clusters_have_them_are_never_too_dense(pods: int) -> None:
    body = review((POD + b",") * pods)
    assert not cost_refused(body)


@pytest.mark.parametrize(("operation", "is_refused"), [("CREATE", True), ("UPDATE", False)])
def test_only_an_update_may_be_as_large_as_two_objects(operation: str, *, is_refused: bool) -> None:
    body = review(b'"%s",' % (b"x" * MAX_OBJECT_BYTES), operation)
    assert bool(cost_refused(body)) is is_refused
