"""The remaining life of a certificate as a metric, which keeps counting down when the certificate is no longer read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from serving.log import utc_now

_DAY_S: Final = 86400.0


def days_left(expires: datetime, now: datetime) -> float:
    return max((expires - now).total_seconds() / _DAY_S, 0.0)


def add_expiry_metric(
    registry: CollectorRegistry, expires: Callable[[], datetime], clock: Callable[[], datetime] = utc_now
) -> None:
    """Adds the metric of the certificate that this process serves, whichever CA issued it."""
    gauge = Gauge(
        "halfcard_served_certificate_days_left",
        "Days until the certificate expires that this replica serves to its clients, with every issuer.",
        registry=registry,
    )
    gauge.set_function(lambda: days_left(expires(), clock()))
