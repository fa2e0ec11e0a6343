"""Metrics of ResourceQuotas. Labels do not name the quotas; Events at the quotas do."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from ..metrics import Figure


def watch_native(registry: CollectorRegistry, *, uncounted: Figure, drifted: Figure) -> None:
    """Asked at each scrape; a replica that does not lead looks at none."""

    def gauge(name: str, meaning: str, figure: Figure) -> None:
        Gauge(f"halfcard_quota_native_{name}", meaning, registry=registry).set_function(figure)

    gauge("uncounted", "ResourceQuotas with GPU amounts that Kubernetes never counts.", uncounted)
    gauge("drifted", "ResourceQuotas whose use of GPUs is not what their pods come to.", drifted)
