from __future__ import annotations

import json
import re
import tracemalloc
from typing import Final

import pytest

from admission import wire
from admission.entry.body_bounds import MAX_OBJECT_BYTES, check_cost
from bench import reviews
from bench.dense_bodies import DENSE, largest, review
from serving.large_bodies import BYTES_PER_VALUE
from serving.request_body import RefusedRequest

POD: Final = json.dumps(reviews.pod(), separators=(",", ":")).encode()


def cost_refused(body: bytes) -> str:
    try:
        check_cost(body)
    except RefusedRequest as refused:
        return f"{refused.status} {refused}"
    return ""


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
