"""Metrics of ResourceQuotas. Labels do not name the quotas; Events at the quotas do."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from ..metrics import Figure


def watch_native(registry: CollectorRegistry, *, uncounted: Figure, drifted: Figure) -> None:
    """The figures are read at each scrape; a replica that is not the leader checks no quota."""

    def gauge(name: str, meaning: str, figure: Figure) -> None:
        Gauge(f"halfcard_quota_native_{name}", meaning, registry=registry).set_function(figure)

    gauge("uncounted", "ResourceQuotas with GPU amounts that Kubernetes never counts.", uncounted)
    gauge("drifted", "ResourceQuotas whose used GPUs differ from the sum of their pods.", drifted)
