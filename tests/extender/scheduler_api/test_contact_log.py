"""What a replica remembers of its clients."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from extender.scheduler_api.contact_log import ContactLog
from extender.scheduler_api.scheduler_contact import NO_CONTACT, HandshakeFailure
from tests.serving.authority import NOW, Authority

OURS: Final = "halfcard-extender.halfcard-system.svc"
AUTHORITY: Final = Authority()


def log(failures: list[HandshakeFailure] | None = None, now: Callable[[], datetime] = lambda: NOW) -> ContactLog:
    return ContactLog(now, lambda: frozenset({OURS}), (failures if failures is not None else []).append)


def expired() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = 10
    return error


def certificate(name: str | None = "kube-scheduler", not_after: datetime = NOW + timedelta(days=9)) -> bytes:
    names = x509.SubjectAlternativeName([x509.DNSName(name)]) if name else None
    pair = AUTHORITY.issue(names=names, usage=ExtendedKeyUsageOID.CLIENT_AUTH, not_after=not_after)
    return x509.load_pem_x509_certificate(pair.cert).public_bytes(Encoding.DER)


def test_a_scheduler_is_remembered_with_the_end_of_its_certificate() -> None:
    seen = log()
    seen.succeeded("::ffff:10.0.0.1", certificate())
    seen.succeeded("10.0.0.2", certificate(name=None, not_after=NOW + timedelta(days=3)))
    assert {address: each.subject for address, each in seen.contact.callers.items()} == {
        "10.0.0.1": "CN=leaf",
        "10.0.0.2": "CN=leaf",
    }
    assert seen.contact.first_end == (NOW + timedelta(days=3)).replace(microsecond=0)


def test_replicas_that_forward_binds_and_clients_without_a_certificate_are_no_schedulers() -> None:
    seen = log()
    seen.succeeded("10.0.0.1", certificate(OURS))
    seen.succeeded("10.0.0.2", None)
    seen.succeeded("10.0.0.3", b"unreadable")
    assert seen.contact == NO_CONTACT


def test_a_failed_handshake_is_counted_and_remembered_by_its_reason() -> None:
    failures: list[HandshakeFailure] = []
    seen = log(failures)
    for address in ("10.0.0.1", "::ffff:10.0.0.2"):
        seen.failed(address, expired())
    assert failures == [HandshakeFailure.EXPIRED] * 2
    assert {why: each.address for why, each in seen.contact.failed.items()} == {HandshakeFailure.EXPIRED: "10.0.0.2"}


def test_calls_are_remembered_to_the_second() -> None:
    moments = iter([datetime(2026, 11, 24, 12, 0, second, 500, tzinfo=UTC) for second in (1, 1, 2)])
    seen = log(now=lambda: next(moments))
    seen.asked()
    seen.bound()
    seen.asked()
    assert seen.contact.asked == datetime(2026, 11, 24, 12, 0, 2, tzinfo=UTC)
    assert seen.contact.bound == datetime(2026, 11, 24, 12, 0, 1, tzinfo=UTC)
