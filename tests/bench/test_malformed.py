from __future__ import annotations

from collections import Counter

from bench.malformed import case


def test_a_case_is_reproducible() -> None:
    assert [case(7, number) for number in range(20)] == [case(7, number) for number in range(20)]
    assert [case(7, number) for number in range(1, 20)] != [case(8, number) for number in range(1, 20)]


def test_every_kind_of_damage_occurs_and_the_costly_ones_are_rare() -> None:
    kinds = Counter(case(1, number).kind for number in range(300))
    assert len(kinds) == 13
    assert (kinds["too large"], kinds["large and dense"]) == (1, 1)


def test_a_request_carries_the_length_of_its_body() -> None:
    for number in range(50):
        sent = case(3, number)
        head, _, body = sent.request().partition(b"\r\n\r\n")
        assert body == sent.body
        assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")
