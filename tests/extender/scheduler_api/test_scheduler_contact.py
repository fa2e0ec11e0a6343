"""What replicas have seen of schedulers: joined in any order it is the same, and repetitions are seldom written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.scheduler_api.scheduler_contact import (
    NO_CONTACT,
    CallerCertificate,
    FailedHandshake,
    HandshakeFailure,
    SchedulerContact,
    is_news,
    joined,
    read_contact,
    write_contact,
)

NOON: Final = datetime(2026, 11, 24, 12, tzinfo=UTC)
ENDS: Final = NOON + timedelta(days=90)


def after(**time: float) -> datetime:
    return NOON + timedelta(**time)


def caller(seen: datetime = NOON, serial: str = "1", ends: datetime = ENDS) -> CallerCertificate:
    return CallerCertificate(seen, ends, "CN=scheduler", serial)


def made(seed: int) -> SchedulerContact:
    """Makes a contact from a number, which is much faster than drawing its parts."""
    chosen = Random(seed)

    def moment() -> datetime:
        return after(days=chosen.randrange(20))

    def some(keys: Sequence[str]) -> list[str]:
        return chosen.sample(keys, chosen.randrange(len(keys)))

    calls = (chosen.choice([None, moment()]), chosen.choice([None, moment()]))
    callers = {address: caller(moment(), chosen.choice("12")) for address in some(ADDRESSES)}
    failed = {why: FailedHandshake(moment(), chosen.choice("ab")) for why in some([*HandshakeFailure])}
    return joined(SchedulerContact(*calls, callers, failed), NO_CONTACT)


ADDRESSES: Final = [f"10.0.0.{at}" for at in range(12)]
contacts = st.integers(0, 2**64).map(made)


@given(contacts, contacts, contacts)
def test_replicas_may_publish_in_any_order_and_repeatedly(
    a: SchedulerContact, b: SchedulerContact, c: SchedulerContact
) -> None:
    assert joined(a, b) == joined(b, a)
    assert joined(joined(a, b), c) == joined(a, joined(b, c))
    assert joined(a, a) == a


@given(contacts, contacts)
def test_what_is_published_is_no_news(a: SchedulerContact, b: SchedulerContact) -> None:
    assert not is_news(joined(a, b), joined(joined(a, b), b))


@given(contacts)
def test_a_contact_is_read_as_it_was_written(contact: SchedulerContact) -> None:
    assert read_contact(write_contact(contact)) == contact


@pytest.mark.parametrize(
    "text", ["", "null", "[]", '{"asked": "yesterday"}', '{"asked": "2026-11-24T12:00:00"}', "\ud800"]
)
def test_a_spoiled_annotation_is_no_contact(text: str) -> None:
    assert read_contact(text) == NO_CONTACT


def test_a_caller_is_forgotten_after_seven_days_and_replaced_by_its_next_certificate() -> None:
    old = SchedulerContact(callers={"10.0.0.1": caller(), "10.0.0.2": caller()})
    renewed = joined(old, SchedulerContact(callers={"10.0.0.1": caller(after(days=6), "2", after(days=900))}))
    assert {address: each.serial for address, each in renewed.callers.items()} == {"10.0.0.1": "2", "10.0.0.2": "1"}
    assert renewed.first_end == ENDS
    later = joined(renewed, SchedulerContact(callers={"10.0.0.1": caller(after(days=8), "2", after(days=900))}))
    assert later.callers.keys() == {"10.0.0.1"}
    assert later.first_end == after(days=900)


PUBLISHED: Final = SchedulerContact(NOON, NOON, {"10.0.0.1": caller()}, {"other": FailedHandshake(NOON, "10.0.0.3")})
NEWS: Final[dict[str, tuple[SchedulerContact, bool]]] = {
    "nothing": (NO_CONTACT, False),
    "a call within the minute": (SchedulerContact(asked=after(seconds=59)), False),
    "a call a minute later": (SchedulerContact(asked=after(seconds=60)), True),
    "a bind a minute later": (SchedulerContact(bound=after(seconds=60)), True),
    "a call before": (SchedulerContact(asked=after(hours=-1)), False),
    "another caller": (SchedulerContact(callers={"10.0.0.2": caller()}), True),
    "another certificate": (SchedulerContact(callers={"10.0.0.1": caller(after(seconds=1), "2")}), True),
    "the same certificate within the hour": (SchedulerContact(callers={"10.0.0.1": caller(after(minutes=59))}), False),
    "the same certificate an hour later": (SchedulerContact(callers={"10.0.0.1": caller(after(minutes=60))}), True),
    "a failure of another kind": (SchedulerContact(failed={"no TLS": FailedHandshake(NOON, "10.0.0.3")}), True),
    "the same failure from anywhere within the minute": (
        SchedulerContact(failed={"other": FailedHandshake(after(seconds=59), "10.0.0.4")}),
        False,
    ),
    "the same failure a minute later": (
        SchedulerContact(failed={"other": FailedHandshake(after(seconds=60), "10.0.0.3")}),
        True,
    ),
}


def test_the_first_call_after_a_failure_is_news_within_the_minute() -> None:
    failed = joined(PUBLISHED, SchedulerContact(failed={"other": FailedHandshake(after(seconds=5), "10.0.0.1")}))
    called = joined(failed, SchedulerContact(asked=after(seconds=6)))
    assert is_news(failed, called)
    assert not is_news(called, joined(called, SchedulerContact(asked=after(seconds=7))))


@pytest.mark.parametrize(("seen", "expected"), NEWS.values(), ids=NEWS)
def test_repetitions_are_no_news_within_the_minute(seen: SchedulerContact, *, expected: bool) -> None:
    assert is_news(PUBLISHED, joined(PUBLISHED, seen)) is expected
