"""Metrics of the quota service. Labels have few values; the status of each quota has its own figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Gauge

from .ledger_controller import LedgerController

Figure = Callable[[], float]


def watch(
    registry: CollectorRegistry,
    *,
    leading: Figure,
    keepers: Callable[[], Iterable[LedgerController]],
    exempt: Figure,
    repaired: Figure,
) -> None:
    """Asked at each scrape; a replica that does not lead keeps no ledger."""

    def gauge(name: str, meaning: str, figure: Figure) -> None:
        Gauge(f"halfcard_quota_{name}", meaning, registry=registry).set_function(figure)

    gauge("leading", "1 where this replica keeps the ledgers.", leading)
    gauge("ledgers", "Ledgers that this replica keeps.", lambda: len([*keepers()]))
    gauge("exempt", "Quotas that nobody is held to for a while.", exempt)
    gauge("repaired", "Ledgers that were wrong and have been put right, since this replica began.", repaired)
    gauge("promised_pods", "Pods that are about to be stored, by all ledgers.", lambda: sum(map(_reserved, keepers())))
    gauge("late_pods", "Pods that came past a quota while it was full.", lambda: sum(map(_late, keepers())))


def _reserved(keeper: LedgerController) -> int:
    return len(keeper.kept.ledger.open) if keeper.kept is not None else 0


def _late(keeper: LedgerController) -> int:
    return len(keeper.kept.ledger.late) if keeper.kept is not None else 0
