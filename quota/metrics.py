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
    controllers: Callable[[], Iterable[LedgerController]],
    exempt: Figure,
    repaired: Figure,
) -> None:
    """The figures are read at each scrape; a replica that is not the leader has no ledgers."""

    def gauge(name: str, meaning: str, figure: Figure) -> None:
        Gauge(f"halfcard_quota_{name}", meaning, registry=registry).set_function(figure)

    gauge("leading", "1 on the leader, which alone writes ledgers and statuses.", leading)
    gauge("ledgers", "Ledgers of this replica; 0 where it is not the leader.", lambda: len([*controllers()]))
    gauge("exempt", "Quotas that are suspended by an exemption.", exempt)
    gauge("repaired", "Ledgers that were repaired since this replica started.", repaired)
    gauge("promised_pods", "Pods with a reservation, in all ledgers.", lambda: sum(map(_reserved, controllers())))
    gauge(
        "late_pods", "Pods that were stored although their quota was exceeded.", lambda: sum(map(_late, controllers()))
    )


def _reserved(controller: LedgerController) -> int:
    return len(controller.stored.ledger.reservations) if controller.stored is not None else 0


def _late(controller: LedgerController) -> int:
    return len(controller.stored.ledger.late) if controller.stored is not None else 0
