"""Metrics of what each quota uses and allows, so that a trend can be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from halfcard.quota.charge import COUNTED
from halfcard.quota.ledger import Ledger, allowed, used

from .ledger_controller import LedgerController

MOST_QUOTAS: Final = 500
"""The quotas with figures of their own: each has up to eight, and Prometheus keeps them all."""

_LABELS: Final = ("namespace", "quota", "resource")
_UNITS: Final = "cores in per cent of a card, memory in MiB"


class NamedLedger(NamedTuple):
    """The ledger of a quota; the namespace is empty for a ClusterGpuQuota."""

    namespace: str
    quota: str
    ledger: Ledger


def named_ledgers(controllers: Iterable[LedgerController]) -> Iterator[NamedLedger]:
    for each in controllers:
        if each.stored is not None:
            yield NamedLedger(each.budget.namespace, each.budget.name, each.stored.ledger)


class AmountMetrics(Collector):
    """Reads the ledgers at each scrape; a replica that is not the leader has none."""

    def __init__(self, registry: CollectorRegistry, ledgers: Callable[[], Iterable[NamedLedger]]) -> None:
        self._ledgers = ledgers
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        uses = GaugeMetricFamily("halfcard_quota_used", f"What is used of a quota: {_UNITS}.", labels=_LABELS)
        limits = GaugeMetricFamily("halfcard_quota_hard", f"What a quota allows: {_UNITS}.", labels=_LABELS)
        for named in islice(self._ledgers(), MOST_QUOTAS):
            found, hard = used(named.ledger), allowed(named.ledger)
            for resource in COUNTED:
                uses.add_metric((named.namespace, named.quota, resource), found[resource])
            for resource in hard.keys() & {*COUNTED}:
                limits.add_metric((named.namespace, named.quota, resource), hard[resource])
        yield from (uses, limits)
