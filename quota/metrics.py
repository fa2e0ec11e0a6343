"""Metrics of the quota service. Labels have few values; the status of each quota has its own figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

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
    """The figures are read at each scrape; a replica that is not the leader has no ledgers and checks no quota."""
    gauge = partial(_gauge, registry)
    gauge("leading", "1 on the leader, which alone writes ledgers and statuses.", leading)
    gauge("ledgers", "Ledgers of this replica; 0 where it is not the leader.", lambda: len([*controllers()]))
    gauge("exempt", "Quotas that are suspended by an exemption.", exempt)
    gauge("repaired", "Ledgers that were repaired since this replica started.", repaired)
    gauge("promised_pods", "Pods with a reservation, in all ledgers.", lambda: sum(map(_reserved, controllers())))
    gauge(
        "late_pods", "Pods that were stored although their quota was exceeded.", lambda: sum(map(_late, controllers()))
    )


def watch_native(registry: CollectorRegistry, *, uncounted: Figure, drifted: Figure) -> None:
    """Adds the figures of Kubernetes' own quotas. Labels do not name the quotas; Events at the quotas do."""
    gauge = partial(_gauge, registry)
    gauge("native_uncounted", "ResourceQuotas with GPU amounts that Kubernetes never counts.", uncounted)
    gauge("native_drifted", "ResourceQuotas whose used GPUs differ from the sum of their pods.", drifted)


def _gauge(registry: CollectorRegistry, name: str, meaning: str, figure: Figure) -> None:
    Gauge(f"halfcard_quota_{name}", meaning, registry=registry).set_function(figure)


def _reserved(controller: LedgerController) -> int:
    return len(controller.stored.ledger.reservations) if controller.stored is not None else 0


def _late(controller: LedgerController) -> int:
    return len(controller.stored.ledger.late) if controller.stored is not None else 0
