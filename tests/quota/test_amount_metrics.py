"""What Prometheus reads about the amounts of quotas."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from halfcard.claims import CARDS, CORES, MEMORY, SHARES
from halfcard.quota.ledger import Entry, Ledger
from quota.amount_metrics import MOST_QUOTAS, AmountMetrics, NamedLedger


def figures(*ledgers: NamedLedger) -> CollectorRegistry:
    registry = CollectorRegistry()
    AmountMetrics(registry, lambda: ledgers)
    return registry


def value(registry: CollectorRegistry, name: str, resource: str, quota: str = "gpu") -> float | None:
    labels = {"namespace": "team", "quota": quota, "resource": resource}
    return registry.get_sample_value(f"halfcard_quota_{name}", labels)


def test_used_counts_reservations_and_hard_has_what_is_limited() -> None:
    reserved = {"u": Entry("team", "p", {CORES: 20})}
    ledger = Ledger({CORES: 200, MEMORY: 1024}, committed={CORES: 30, CARDS: 1}, reservations=reserved)
    found = figures(NamedLedger("team", "gpu", ledger))
    assert [value(found, "used", each) for each in (CORES, MEMORY, CARDS, SHARES)] == [50, 0, 1, 0]
    assert [value(found, "hard", each) for each in (CORES, MEMORY, CARDS, SHARES)] == [200, 1024, None, None]


def test_hard_follows_loans() -> None:
    ledger = Ledger({CORES: 200}, lent={"other": {CORES: 50}}, borrowed={"third": {CORES: 20}})
    assert value(figures(NamedLedger("team", "gpu", ledger)), "hard", CORES) == 170


def test_only_so_many_quotas_have_figures() -> None:
    found = figures(*(NamedLedger("team", f"q{number}", Ledger({CORES: 1})) for number in range(MOST_QUOTAS + 1)))
    assert value(found, "hard", CORES, f"q{MOST_QUOTAS - 1}") == 1
    assert value(found, "hard", CORES, f"q{MOST_QUOTAS}") is None
