from __future__ import annotations

import pytest

from bench.dense_bodies import DENSE, MOST_OF_PLAIN, is_accepted, largest, measure


def test_the_slowest_kind_is_compared_with_the_bound() -> None:
    kinds = {kind: DENSE[kind] for kind in ("variables", "empty lists")}
    *each, slowest = measure(repeats=1, kinds=kinds).figures
    assert [figure.name for figure in each] == list(kinds)
    assert (slowest.value, slowest.at_most) == (max(figure.value for figure in each), MOST_OF_PLAIN)


@pytest.mark.parametrize("kind", DENSE)
def test_a_body_that_is_a_quarter_larger_than_the_largest_is_refused(kind: str) -> None:
    body = largest(kind)
    assert is_accepted(body)
    assert not is_accepted(DENSE[kind](int(len(body) * 1.4))) or len(body) > 5 * 2**20
