"""Which objects are written next."""

from __future__ import annotations

from quota.reporting.usage_objects import UsageKey
from quota.reporting.usage_turns import UsageVersion, Written, due

A, B, C = (UsageKey(namespace, "research") for namespace in "abc")
OLD, NEW = UsageVersion((1, 0, False), "7"), UsageVersion((2, 0, False), "8")
ELSEWHERE = OLD._replace(ledger="8")


def test_new_objects_and_own_changes_are_due_at_once() -> None:
    assert due({A: OLD, B: NEW}, {B: Written(OLD, 100.0)}, now_s=100.0) == [A, B]


def test_what_has_not_changed_is_not_due() -> None:
    assert due({A: OLD}, {A: Written(OLD, 0.0)}, now_s=1e9) == []


def test_changes_of_others_wait_and_the_oldest_is_first() -> None:
    written = {A: Written(OLD, 20.0), B: Written(OLD, 10.0), C: Written(OLD, 0.0)}
    parts = {A: ELSEWHERE, B: ELSEWHERE, C: NEW}
    assert due(parts, written, now_s=39.9) == [C]
    assert due(parts, written, now_s=40.0) == [C, B]
    assert due(parts, written, now_s=50.0) == [C, B, A]
