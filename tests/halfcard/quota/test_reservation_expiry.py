"""When a reservation expires: in time that counts, and after two reads that find no pod."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from halfcard.quota.ledger import Entry, Ledger
from halfcard.quota.reservation_expiry import (
    APART_S,
    CERTAIN_S,
    IN_CALL_S,
    OLD_S,
    STEP_S,
    OpenReservations,
    settled_in_s,
)


def reads(reservations: OpenReservations, *times: float, stored: Sequence[str] = ()) -> OpenReservations:
    for each in times:
        reservations = reservations.read(each, {"u"}, stored)
    return reservations


def every(step: float, until: float) -> list[float]:
    return [at * step for at in range(int(until / step) + 1)]


OLD = every(5.0, OLD_S)


def test_an_old_reservation_expires_after_two_reads_without_its_pod() -> None:
    old = reads(OpenReservations(), *OLD)
    assert old.expired() == frozenset()
    assert reads(old, OLD_S + APART_S / 2).expired() == frozenset()
    assert reads(old, OLD_S + APART_S / 2, OLD_S + APART_S).expired() == {"u"}


def test_a_reservation_whose_pod_is_found_in_between_stays() -> None:
    found = reads(reads(OpenReservations(), *OLD), OLD_S + 5.0, stored=["u"])
    assert reads(found, OLD_S + 10.0, OLD_S + 15.0).expired() == frozenset()


@pytest.mark.parametrize("gap", [60.0, 3600.0, 10**9])
def test_time_without_answers_does_not_count(gap: float) -> None:
    assert reads(OpenReservations(), 0.0, gap, 2 * gap, 3 * gap).now == 3 * STEP_S
    after_failure = reads(reads(OpenReservations(), 0.0).failed(), gap)
    assert after_failure.now == 0.0
    assert reads(after_failure, gap + 2.0).now == 2.0


def test_reservations_that_are_gone_have_no_age() -> None:
    assert reads(OpenReservations(), *OLD).read(OLD_S + 5.0, (), ()).seen_since == {}


@pytest.mark.parametrize(
    ("ages", "within_s"),
    [
        ({}, IN_CALL_S),
        ({"young": 1.0, "old": 20.0}, IN_CALL_S),  # room for the charge once the young one is settled
        ({"young": 4.0, "old": 20.0}, CERTAIN_S - 4.0),
        ({"young": 90.0, "old": 90.0}, IN_CALL_S),  # the API server has not worked all the time
    ],
)
def test_a_client_is_asked_to_wait_until_the_reservations_in_the_way_are_settled(
    ages: dict[str, float], within_s: float
) -> None:
    reservations = {name: Entry("team", "pod", {"cores": 50}) for name in ("young", "old")}
    assert settled_in_s(Ledger({"cores": 100}, reservations=reservations), {"cores": 30}, ages) == within_s


def test_old_reservations_are_certainly_settled_when_they_have_expired() -> None:
    assert CERTAIN_S >= OLD_S + APART_S
