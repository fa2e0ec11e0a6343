"""Adds to the usage that the driver shows what held containers say themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from halfcard.isolation.shared_files import AccountCard

from .usage_report import AccountUsage, ContainerUsage, NodeUsageReport

_MIB: Final = 1 << 20
_MS_NS: Final = 10**6

_MOST: Final = 2**53
"""JSON and Prometheus know greater numbers only inexactly."""

AccountKey = tuple[str, str, str]
"""The uid of the pod, the container and the card's uuid."""

Accounts = Mapping[AccountKey, AccountUsage]


def said_of(card: AccountCard, processes: Collection[int]) -> AccountUsage:
    """Adds up the rows of these processes, by their names: those of ended ones may still be there.

    Containers write what they like, so the sums may be any numbers.
    """
    rows = [row for row in card.rows.values() if row.process in processes]
    return AccountUsage(
        _bounded(sum(row.bytes for row in rows) // _MIB),
        _bounded(sum(row.refused for row in rows)),
        _bounded(sum(row.throttled_ns for row in rows) // _MS_NS),
    )


def _bounded(amount: int) -> int:
    return min(amount, _MOST)


def added_up(said: Iterable[tuple[AccountKey, AccountUsage]]) -> Accounts:
    """Adds up the accounts of each container: it has one for each resource, and uses one of them."""
    found: dict[AccountKey, AccountUsage] = {}
    for key, account in said:
        found[key] = _sum(found[key], account) if key in found else account
    return found


def _sum(one: AccountUsage, other: AccountUsage) -> AccountUsage:
    return AccountUsage(
        one.memory_mib + other.memory_mib, one.refused + other.refused, one.throttled_ms + other.throttled_ms
    )


def with_accounts(report: NodeUsageReport, accounts: Accounts) -> NodeUsageReport:
    if not accounts:
        return report
    return replace(report, containers=tuple(_with_accounts(each, accounts) for each in report.containers))


def _with_accounts(container: ContainerUsage, accounts: Accounts) -> ContainerUsage:
    mine = (container.uid, container.container)
    parts = (replace(part, account=accounts.get((*mine, part.uuid))) for part in container.cards)
    return replace(container, cards=tuple(parts))
