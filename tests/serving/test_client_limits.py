from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.client_limits import ClientLimits, RequestPart, overdue

LIMITS = ClientLimits(header_s=10, body_s=20, keep_alive_s=120)


@pytest.mark.parametrize(
    ("reading", "waited_s", "answering", "status"),
    [
        (RequestPart.HEADER, 10.1, False, 408),
        (RequestPart.BODY, 20.1, False, 408),
        (RequestPart.BODY, 20.1, True, 408),
        (RequestPart.NOTHING, 120.1, False, None),
    ],
)
def test_a_connection_that_exceeds_a_deadline_ends(
    reading: RequestPart, waited_s: float, *, answering: bool, status: int | None
) -> None:
    verdict = overdue(reading, waited_s, answering=answering, limits=LIMITS)
    assert verdict is not None
    assert verdict.status == status


@pytest.mark.parametrize(
    ("reading", "waited_s", "answering"),
    [
        (RequestPart.HEADER, 10, False),
        (RequestPart.BODY, 20, True),
        (RequestPart.NOTHING, 120, False),
        (RequestPart.NOTHING, 1000, True),  # The application takes its time.
        (RequestPart.HEADER, 1000, True),  # The next request waits for this answer anyway.
    ],
)
def test_a_connection_within_its_deadline_continues(reading: RequestPart, waited_s: float, *, answering: bool) -> None:
    assert overdue(reading, waited_s, answering=answering, limits=LIMITS) is None


@given(st.sampled_from(RequestPart), st.booleans(), st.floats(0, 1e6), st.floats(0, 1e6))
def test_an_overdue_connection_stays_overdue(
    reading: RequestPart,
    answering: bool,  # noqa: FBT001 - drawn by Hypothesis
    waited_s: float,
    more_s: float,
) -> None:
    if overdue(reading, waited_s, answering=answering, limits=LIMITS):
        assert overdue(reading, waited_s + more_s, answering=answering, limits=LIMITS)


def test_the_server_keeps_idle_connections_longer_than_an_api_server_does() -> None:
    assert ClientLimits().keep_alive_s >= 120


@pytest.mark.parametrize("limits", [ClientLimits(), ClientLimits(header_s=0.2), ClientLimits(body_s=0.01)])
def test_a_sweep_comes_often_enough_for_the_shortest_deadline(limits: ClientLimits) -> None:
    assert limits.sweep_every_s <= max(0.01, min(limits.header_s, limits.body_s))
