"""Metrics of the certificate controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from certs.certificate_checks import certificates
from certs.chain_state import ChainState
from certs.chains import Chain, ObjectPath
from certs.objects import CA_CRT, TLS_CRT, entry
from certs.reconcile import ReconcileResult
from certs.steps import Keep
from serving.certificate_expiry import days_left
from serving.log import utc_now


class CertificateMetrics:
    """Metrics; the days left count down from the last read, so that a controller without rights is noticed."""

    def __init__(
        self, registry: CollectorRegistry, chains: Iterable[Chain], clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._clock = clock
        self._days_left = Gauge(
            "halfcard_certs_days_left",
            "Days until a certificate expires, by its Secret; 0 where the Secret has none.",
            ["certificate"],
            registry=registry,
        )
        self._due = Gauge(
            "halfcard_certs_due",
            "1 where a chain of certificates needs a step that an administrator must do.",
            ["chain"],
            registry=registry,
        )
        self._changes = Counter(
            "halfcard_certs_changes_total", "Writes of this replica, by object.", ["object"], registry=registry
        )
        self._checked = Gauge(
            "halfcard_certs_last_look_timestamp_seconds",
            "Time of the last complete check of a chain of certificates; 0 for never.",
            ["chain"],
            registry=registry,
        )
        for chain in chains:
            self._checked.labels(chain.title)

    def record_change(self, place: ObjectPath) -> None:
        self._changes.labels(place.name).inc()

    def record_check(self, result: ReconcileResult) -> None:
        chain = result.state.chain.title
        self._due.labels(chain).set(isinstance(result.last, Keep) and result.last.needs_action)
        self._checked.labels(chain).set(self._clock().timestamp())
        for place, expiry in expiries(result.state).items():
            self._days_left.labels(place.name).set_function(partial(self._left, expiry))

    def _left(self, expiry: datetime | None) -> float:
        return days_left(expiry, self._clock()) if expiry else 0.0


def expiries(seen: ChainState) -> Mapping[ObjectPath, datetime | None]:
    files = {seen.chain.authority: CA_CRT, **dict.fromkeys(seen.chain.leaves, TLS_CRT)}
    return {place: _expiry(entry(seen.items[place], file)) for place, file in files.items()}


def _expiry(pem: bytes | None) -> datetime | None:
    found = certificates(pem)
    return found[0].not_valid_after_utc if found else None
