from __future__ import annotations

from admission import wire
from admission.dispatch import decide
from admission.policy import AdmissionPolicy
from admission.verdict import Verdict
from admission.writes import decode_write
from bench import reviews
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN


def judged(path: str, pod: reviews.Json) -> Verdict:
    request = wire.read(reviews.body(reviews.pod_review(pod))).request
    return decide(path, decode_write(request, AdmissionPolicy()), AdmissionPolicy(), NOTHING_KNOWN)


def test_the_pod_review_has_the_printed_size() -> None:
    assert 4000 <= len(reviews.body(reviews.pod_review(reviews.pod()))) <= 4800


def test_the_pod_is_allowed_and_gets_a_patch() -> None:
    verdict = judged(names.MUTATE_PODS_PATH, reviews.pod())
    assert verdict.allowed
    assert verdict.changes


def test_the_accepted_pod_is_the_patched_pod() -> None:
    assert judged(names.MUTATE_PODS_PATH, reviews.accepted_pod()).changes == ()
    assert judged(names.VALIDATE_PODS_PATH, reviews.accepted_pod()) == Verdict()


def test_a_large_pod_has_about_the_requested_size() -> None:
    for size in (100_000, 1_000_000):
        assert 0.9 * size < len(reviews.body(reviews.pod_review(reviews.pod_of_size(size)))) < 1.1 * size
