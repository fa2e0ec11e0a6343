"""Checks that certificates can be read, and are not about to expire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from cryptography import x509

from certs.certificate_checks import certificates, outside_validity
from halfcard import names

from ..causes import NOT_KEPT
from ..finding import BROKEN, WARNING, Check, FoundFault
from ..snapshot import Snapshot
from ..webhooks.registered_webhooks import KEEPERS
from .trusted_authorities import CA_FILE, CHAIN_FILE, REFUSED, bundles, holds, secret_place, written_time

SECRETS: Final = {
    names.ADMISSION_CA: CA_FILE,
    names.ADMISSION_TLS: CHAIN_FILE,
    names.EXTENDER_CA: CA_FILE,
    names.EXTENDER_TLS: CHAIN_FILE,
    names.SCHEDULER_TLS: CHAIN_FILE,
}
"""The Secrets, each with its entry that contains certificates."""

_LEFT: Final = 1 / 5
"""The part of a certificate's life that may be left; renewal is due when a third is left, so it was missed."""

_REPAIR: Final = "check why it is not renewed: the log of the certificate controller or of cert-manager says why"
_STATUS: Final = "halfcard certs status"
_LOG: Final = f"kubectl -n {names.NAMESPACE} logs deployment/{names.CERTS_SERVICE}"


def _kept(snapshot: Snapshot) -> Iterator[tuple[str, str, bytes]]:
    for secret, entry in SECRETS.items():
        data: Mapping[str, bytes] = snapshot.secrets.get(secret) or {}
        if data:
            yield secret, entry, data.get(entry, b"")


def _unreadable(snapshot: Snapshot) -> Iterator[FoundFault]:
    for secret, entry, pem in _kept(snapshot):
        if not certificates(pem):
            fix = "if Halfcard makes it, delete the Secret: it is made again"
            command = f"kubectl -n {names.NAMESPACE} delete secret {secret}"
            yield FoundFault(secret_place(secret), f"{entry} contains no certificate", fix, command, *_of(secret))


def _expired(snapshot: Snapshot) -> Iterator[FoundFault]:
    for secret, entry, pem in _kept(snapshot):
        for certificate in certificates(pem)[:1]:
            if flaw := outside_validity(entry, certificate, snapshot.now):
                yield FoundFault(secret_place(secret), flaw, _REPAIR, _LOG, *_of(secret))


def _expiring(snapshot: Snapshot) -> Iterator[FoundFault]:
    for secret, entry, pem in _kept(snapshot):
        for certificate in certificates(pem)[:1]:
            if holds(certificate, snapshot.now) and _is_late(certificate, snapshot.now):
                got = f"{entry} expires at {written_time(certificate.not_valid_after_utc)}"
                yield FoundFault(secret_place(secret), got, _REPAIR, _LOG, *_of(secret))
    for bundle in bundles(snapshot):
        valid = [each for each in bundle.certificates() if holds(each, snapshot.now)]
        if valid and all(_is_late(each, snapshot.now) for each in valid):
            ends = max(each.not_valid_after_utc for each in valid)
            got, fix = f"its last CA expires at {written_time(ends)}", "make a new CA, and register both"
            yield FoundFault(bundle.where, got, fix, _STATUS, names.ADMISSION_SERVICE, KEEPERS)


def _is_late(certificate: x509.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < life * _LEFT


def _of(secret: str) -> tuple[str, tuple[str, ...]]:
    """Returns the process that a Secret is about, and the processes that prevent its faults."""
    is_admissions = secret in (names.ADMISSION_CA, names.ADMISSION_TLS)
    process = names.ADMISSION_SERVICE if is_admissions else names.EXTENDER_SERVICE
    return process, (process, *KEEPERS)


_DUE: Final = (*NOT_KEPT, "certificates-due")

CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "certificate-unreadable",
        BROKEN,
        "a Secret for certificates contains certificates",
        "Replicas that start now cannot serve.",
        _unreadable,
        unless=_DUE,
    ),
    Check("certificate-expired", BROKEN, "a certificate in use is valid now", REFUSED, _expired, _DUE),
    Check(
        "certificate-expiring",
        WARNING,
        "a certificate is renewed before four fifths of its life have passed",
        "Certificates are renewed at two thirds of their life: a later one is not being renewed.",
        _expiring,
        unless=_DUE,
    ),
)
