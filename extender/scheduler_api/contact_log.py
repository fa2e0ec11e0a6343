"""What this replica has seen of schedulers since its start."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cryptography import x509

from halfcard.problems import printable

from .scheduler_contact import (
    NO_CONTACT,
    CallerCertificate,
    FailedHandshake,
    HandshakeFailure,
    SchedulerContact,
    joined,
)

_SUBJECT_CHARS: Final = 80
_MAPPED: Final = "::ffff:"
"""The prefix of an IPv4 address on a socket for both families."""


@dataclass(slots=True)
class ContactLog:
    """Observes handshakes; the endpoints of filter and bind report their calls.

    Attributes:
        own_names: the names of this replica's certificate, by which it recognises other replicas, which forward binds.
        on_failure: counts a failed handshake.
    """

    now: Callable[[], datetime]
    own_names: Callable[[], frozenset[str]]
    on_failure: Callable[[HandshakeFailure], None]
    contact: SchedulerContact = field(default=NO_CONTACT)

    def asked(self) -> None:
        if (now := self._now()) != self.contact.asked:  # a busy scheduler calls many times in a second
            self._add(SchedulerContact(asked=now))

    def bound(self) -> None:
        if (now := self._now()) != self.contact.bound:
            self._add(SchedulerContact(bound=now))

    def succeeded(self, address: str, certificate: bytes | None) -> None:
        found = _read(certificate) if certificate else None
        if found is not None and not _names(found) & self.own_names():
            self._add(SchedulerContact(callers={_plain(address): _caller(found, self._now())}))

    def failed(self, address: str, error: BaseException) -> None:
        if (why := failure_of(error)) is None:
            return
        self.on_failure(why)
        self._add(SchedulerContact(failed={why: FailedHandshake(self._now(), _plain(address))}))

    def _add(self, seen: SchedulerContact) -> None:
        self.contact = joined(self.contact, seen)

    def _now(self) -> datetime:
        return self.now().replace(microsecond=0)


def _read(certificate: bytes) -> x509.Certificate | None:
    """Reads a certificate; None for one that TLS accepts and this library does not."""
    try:
        return x509.load_der_x509_certificate(certificate)
    except ValueError:
        return None


def _plain(address: str) -> str:
    return address.removeprefix(_MAPPED)


def _caller(certificate: x509.Certificate, now: datetime) -> CallerCertificate:
    subject = printable(certificate.subject.rfc4514_string(), _SUBJECT_CHARS)
    return CallerCertificate(now, certificate.not_valid_after_utc, subject, f"{certificate.serial_number:x}")


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(name.value) for name in found)


# --- handshakes ------------------------------------------------------------------------------------------------------

_CERT_NOT_YET_VALID: Final = 9
_CERT_HAS_EXPIRED: Final = 10
_BY_REASON: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": HandshakeFailure.MISSING,
    "HTTP_REQUEST": HandshakeFailure.PLAIN,
}


def failure_of(error: BaseException) -> HandshakeFailure | None:
    """Classifies the error of a handshake; None for a client that went away, as probes do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        is_outside = error.verify_code in (_CERT_NOT_YET_VALID, _CERT_HAS_EXPIRED)
        return HandshakeFailure.EXPIRED if is_outside else HandshakeFailure.UNTRUSTED
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None) or ""
        return HandshakeFailure.DISTRUSTED if "_ALERT_" in reason else _BY_REASON.get(reason, HandshakeFailure.OTHER)
    return HandshakeFailure.TIMEOUT if isinstance(error, ConnectionAbortedError) else None
