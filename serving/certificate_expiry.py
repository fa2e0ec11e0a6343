"""The remaining life of a certificate as a metric, which keeps counting down when the certificate is no longer read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from serving.log import utc_now

_DAY_S: Final = 86400.0


def days_left(ends: datetime, now: datetime) -> float:
    return max((ends - now).total_seconds() / _DAY_S, 0.0)


def watch_served(
    registry: CollectorRegistry, ends: Callable[[], datetime], clock: Callable[[], datetime] = utc_now
) -> None:
    """Watches the certificate that clients are shown, whichever CA issued it."""
    gauge = Gauge(
        "halfcard_served_certificate_days_left",
        "Until the certificate ends that this replica of the webhook or the extender shows, whoever made it.",
        registry=registry,
    )
    gauge.set_function(lambda: days_left(ends(), clock()))
