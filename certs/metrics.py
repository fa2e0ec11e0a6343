"""Metrics of the certificate controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from certs.certificate_checks import certificates
from certs.chains import Chain, ObjectPath
from certs.objects import CA_CRT, TLS_CRT, entry
from certs.reconcile import ChainState, ReconcileResult
from certs.steps import Keep
from serving.certificate_expiry import days_left
from serving.log import utc_now


class CertificateMetrics:
    """Expiry metrics that count down from the last reading, so that a controller without rights is noticed."""

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
        self._looked = Gauge(
            "halfcard_certs_last_look_timestamp_seconds",
            "Time of the last complete check of a chain of certificates; 0 for never.",
            ["chain"],
            registry=registry,
        )
        for chain in chains:
            self._looked.labels(chain.title)

    def changed(self, place: ObjectPath) -> None:
        self._changes.labels(place.name).inc()

    def looked(self, looked: ReconcileResult) -> None:
        chain = looked.seen.chain.title
        self._due.labels(chain).set(isinstance(looked.last, Keep) and looked.last.is_due)
        self._looked.labels(chain).set(self._clock().timestamp())
        for place, ends in ends_of(looked.seen).items():
            self._days_left.labels(place.name).set_function(partial(self._left, ends))

    def _left(self, ends: datetime | None) -> float:
        return days_left(ends, self._clock()) if ends else 0.0


def ends_of(seen: ChainState) -> Mapping[ObjectPath, datetime | None]:
    files = {seen.chain.authority: CA_CRT, **dict.fromkeys(seen.chain.leaves, TLS_CRT)}
    return {place: _ends(entry(seen.items[place], file)) for place, file in files.items()}


def _ends(pem: bytes | None) -> datetime | None:
    found = certificates(pem)
    return found[0].not_valid_after_utc if found else None
