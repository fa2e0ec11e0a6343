"""What the keeper of certificates counts."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from certs.chains import Place
from certs.flaws import certificates
from certs.objects import CA_CRT, TLS_CRT, entry
from certs.steps import Keep
from certs.upkeep import Looked, Seen

_DAY_S: Final = 86400.0


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._days_left = Gauge(
            "halfcard_certs_days_left",
            "Until a certificate ends, by the Secret that holds it; 0 where it holds none.",
            ["certificate"],
            registry=registry,
        )
        self._due = Gauge(
            "halfcard_certs_due",
            "1 where a chain of certificates wants something that only people can do.",
            ["chain"],
            registry=registry,
        )
        self._changes = Counter(
            "halfcard_certs_changes_total", "What this replica wrote, by object.", ["object"], registry=registry
        )
        self._looked = Gauge(
            "halfcard_certs_last_look_timestamp_seconds",
            "When a chain of certificates was last looked at in full.",
            ["chain"],
            registry=registry,
        )

    def changed(self, place: Place) -> None:
        self._changes.labels(place.name).inc()

    def looked(self, looked: Looked, now: datetime) -> None:
        chain = looked.seen.chain.title
        self._due.labels(chain).set(isinstance(looked.last, Keep) and looked.last.is_due)
        self._looked.labels(chain).set(now.timestamp())
        for place, days in days_left(looked.seen, now).items():
            self._days_left.labels(place.name).set(days)


def days_left(seen: Seen, now: datetime) -> dict[Place, float]:
    files = {seen.chain.authority: CA_CRT, **dict.fromkeys(seen.chain.leaves, TLS_CRT)}
    return {place: _days_left(entry(seen.items[place], file), now) for place, file in files.items()}


def _days_left(pem: bytes | None, now: datetime) -> float:
    found = certificates(pem)
    return max((found[0].not_valid_after_utc - now).total_seconds() / _DAY_S, 0.0) if found else 0.0
