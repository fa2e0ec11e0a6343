"""What held containers say of themselves stands beside what the driver measures."""

from __future__ import annotations

from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from deviceplugin.gpus.interface import Process
from deviceplugin.usage.accounts import added_up, said_of, with_accounts
from deviceplugin.usage.usage_json import read_usage, usage_json
from deviceplugin.usage.usage_metrics import write
from deviceplugin.usage.usage_report import AccountUsage
from deviceplugin.usage.usage_text import usage_text
from halfcard.isolation.shared_files import NO_LIMIT, AccountCard, AccountRow

from ..usages import SEED, load, owner, usage

MIB: Final = 1 << 20
SEEN: Final = usage([SEED], {"GPU-0": load(Process(7, 300, 5))}, {7: owner("vcuda")})
SAID: Final = AccountUsage(memory_mib=250, refused=3, throttled_ms=1200)
HELD: Final = with_accounts(SEEN, {("uid-vcuda", "tensorflow", "GPU-0"): SAID})


def test_the_rows_of_running_processes_are_added_up() -> None:
    one, two, ended = (number << 16 for number in (1, 2, 3))
    rows = {
        0: AccountRow(one, 100 * MIB, 1, 5, 7, 10**9),
        1: AccountRow(ended, 900 * MIB, 9, 5, 7, 10**9),
        3: AccountRow(two, 150 * MIB, 2, 5, 7, 2 * 10**8),
    }
    assert said_of(AccountCard(0, 0, rows), {1, 2}) == SAID


def test_the_accounts_of_a_container_are_added_up_for_each_card() -> None:
    unused, mine, other = AccountUsage(0, 0, 0), ("uid-vcuda", "tensorflow", "GPU-0"), ("uid-vcuda", "side", "GPU-0")
    said = [(mine, SAID), (mine, unused), (other, SAID)]
    assert added_up(said) == added_up(reversed(said)) == {mine: SAID, other: SAID}


def test_forged_rows_give_numbers_that_every_format_has() -> None:
    rows = {at: AccountRow(1 << 16 | at, *[NO_LIMIT] * 5) for at in range(256)}
    forged = with_accounts(SEEN, {("uid-vcuda", "tensorflow", "GPU-0"): said_of(AccountCard(0, 0, rows), {1})})
    assert read_usage(usage_json(forged)) == forged
    assert "halfcard_container_refused_allocations" in write(forged)


def test_containers_that_are_not_held_say_nothing() -> None:
    assert SEEN == with_accounts(SEEN, {}) == with_accounts(SEEN, {("uid-vcuda", "other", "GPU-0"): SAID})
    assert "held" not in usage_text(SEEN)
    assert [each for each in _samples(write(SEEN)) if "account" in each[0]] == []


def test_a_held_container_says_what_it_has_was_refused_and_waited_for() -> None:
    assert usage_text(HELD).endswith(
        "default/vcuda/tensorflow is held on card 0: 250 MiB in its account, 3 allocations refused, launches\n"
        "  waited 1200 ms for its cores\n"
    )
    assert read_usage(usage_json(HELD)) == HELD


def test_metrics_have_both_the_drivers_view_and_the_accounts() -> None:
    values = dict(_samples(write(HELD)))
    assert values["halfcard_container_used_memory_mib"] == 300
    assert values["halfcard_container_account_memory_mib"] == 250
    assert values["halfcard_container_refused_allocations"] == 3
    assert values["halfcard_container_throttled_ms"] == 1200


def _samples(text: str) -> list[tuple[str, float]]:
    return [(each.name, each.value) for family in text_string_to_metric_families(text) for each in family.samples]
