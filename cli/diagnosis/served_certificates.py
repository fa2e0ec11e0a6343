"""Checks that the API server trusts the served certificate, and that certificates are not about to expire."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby
from typing import Final, NamedTuple

from cryptography import x509

from certs.certificate_checks import certificates, is_signed_by, names_of, outside_validity
from certs.server_names import listed
from halfcard import names

from .finding import BROKEN, WARNING, Check, FoundFault, several
from .snapshot import Snapshot
from .webhook_registration import REGISTER, Registered, registered

CA_FILE: Final = "ca.crt"
CHAIN_FILE: Final = "tls.crt"
SECRETS: Final = {
    names.ADMISSION_CA: CA_FILE,
    names.ADMISSION_TLS: CHAIN_FILE,
    names.EXTENDER_CA: CA_FILE,
    names.EXTENDER_TLS: CHAIN_FILE,
    names.SCHEDULER_TLS: CHAIN_FILE,
}
"""The Secrets, each with its entry that contains certificates."""

_SERVED_NAME: Final = f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}.svc"
_LEFT: Final = 1 / 5
"""The part of a certificate's life that may be left; renewal is due when a third is left, so it was missed."""

_REPAIR: Final = "check why it is not renewed: the log of the certificate controller or of cert-manager says why"
_STATUS: Final = "halfcard certs status"


class Bundle(NamedTuple):
    """The CA bundle of webhooks of one configuration."""

    where: str
    text: str

    def certificates(self) -> list[x509.Certificate]:
        try:
            return certificates(base64.b64decode(self.text, validate=True))
        except binascii.Error:
            return []


def _bundles(snapshot: Snapshot) -> Iterator[Bundle]:
    """Yields bundles: webhooks of one object with the same bundle are reported together; those with a URL may need
    no CA.
    """
    called = [each for each in registered(snapshot).values() if "service" in each.client]
    everything = sorted(called, key=_trusted)
    for (configuration, text), group in groupby(everything, key=_trusted):
        those = list(group)
        of_it = [each for each in called if each.configuration == configuration]
        which = (
            "" if len(those) == len(of_it) else f", {several([str(each.webhook['name']) for each in those], 'webhook')}"
        )
        yield Bundle(f"caBundle of {configuration}{which}", text)


def _trusted(found: Registered) -> tuple[str, str]:
    return found.configuration, str(found.client.get("caBundle") or "")


# --- what is trusted -------------------------------------------------------------------------------------------------


def _empty(snapshot: Snapshot) -> Iterator[FoundFault]:
    for bundle in _bundles(snapshot):
        if not bundle.text:
            fix = "write the CA that signed the webhook's certificate there, or check why it is not injected"
            yield FoundFault(bundle.where, "is empty", fix, REGISTER)


def _garbage(snapshot: Snapshot) -> Iterator[FoundFault]:
    for bundle in _bundles(snapshot):
        if bundle.text and not bundle.certificates():
            yield FoundFault(bundle.where, "no certificate can be read there", "write the CA there, as PEM", REGISTER)


def _outlived(snapshot: Snapshot) -> Iterator[FoundFault]:
    for bundle in _bundles(snapshot):
        found = bundle.certificates()
        if found and not any(_holds(each, snapshot.now) for each in found):
            ended = max(each.not_valid_after_utc for each in found)
            yield FoundFault(
                bundle.where, f"all its CAs expired at {_time(ended)}", "make a new CA, and register it", REGISTER
            )


def _mismatch(snapshot: Snapshot) -> Iterator[FoundFault]:
    chain = certificates((snapshot.secrets.get(names.ADMISSION_TLS) or {}).get(CHAIN_FILE, b""))
    if not chain:
        return
    for bundle in _bundles(snapshot):
        trusted = [each for each in bundle.certificates() if _holds(each, snapshot.now)]
        if trusted and not any((is_signed_by(each, by) or each == by) for each in chain for by in trusted):
            got = f"none of its {len(trusted)} certificates signed the certificate in Secret {names.ADMISSION_TLS}"
            yield FoundFault(bundle.where, got, f"write the {CA_FILE} of that certificate's CA there", REGISTER)
    if _SERVED_NAME not in (answers_for := names_of(chain[0])):
        got = f"its certificate is for {listed(answers_for)}"
        yield FoundFault(_place(names.ADMISSION_TLS), got, f"make a certificate for {_SERVED_NAME}")


def _holds(certificate: x509.Certificate, now: datetime) -> bool:
    return outside_validity("", certificate, now) is None


# --- what is kept ----------------------------------------------------------------------------------------------------


def _kept(snapshot: Snapshot) -> Iterator[tuple[str, str, bytes]]:
    for secret, entry in SECRETS.items():
        data: Mapping[str, bytes] = snapshot.secrets.get(secret) or {}
        if data:
            yield secret, entry, data.get(entry, b"")


def _unreadable(snapshot: Snapshot) -> Iterator[FoundFault]:
    for secret, entry, pem in _kept(snapshot):
        if not certificates(pem):
            fix = "if Halfcard makes it, delete the Secret: it is made again"
            yield FoundFault(_place(secret), f"{entry} contains no certificate", fix)


def _expired(snapshot: Snapshot) -> Iterator[FoundFault]:
    for secret, entry, pem in _kept(snapshot):
        for certificate in certificates(pem)[:1]:
            if flaw := outside_validity(entry, certificate, snapshot.now):
                yield FoundFault(_place(secret), flaw, _REPAIR, _STATUS)


def _expiring(snapshot: Snapshot) -> Iterator[FoundFault]:
    for secret, entry, pem in _kept(snapshot):
        for certificate in certificates(pem)[:1]:
            if _holds(certificate, snapshot.now) and _is_late(certificate, snapshot.now):
                got = f"{entry} expires at {_time(certificate.not_valid_after_utc)}"
                yield FoundFault(_place(secret), got, _REPAIR, _STATUS)
    for bundle in _bundles(snapshot):
        valid = [each for each in bundle.certificates() if _holds(each, snapshot.now)]
        if valid and all(_is_late(each, snapshot.now) for each in valid):
            ends = max(each.not_valid_after_utc for each in valid)
            yield FoundFault(
                bundle.where, f"its last CA expires at {_time(ends)}", "make a new CA, and register both", _STATUS
            )


def _is_late(certificate: x509.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < life * _LEFT


def _place(secret: str) -> str:
    return f"Secret {names.NAMESPACE}/{secret}"


def _time(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


_REFUSED: Final = "GPU pods are refused while the API server cannot trust the webhook."

CHECKS: Final[tuple[Check, ...]] = (
    Check("ca-bundle-empty", BROKEN, "the caBundle of a webhook is not empty", _REFUSED, _empty),
    Check("ca-bundle-garbage", BROKEN, "a caBundle contains certificates as PEM", _REFUSED, _garbage),
    Check("ca-bundle-expired", BROKEN, "a CA of the caBundle is valid now", _REFUSED, _outlived),
    Check(
        "certificate-mismatch",
        BROKEN,
        "the CAs of the caBundle verify the served certificate, for the Service's name",
        f"{_REFUSED} Needs the right to read the Secret; without it `webhook-distrusted` says the same.",
        _mismatch,
    ),
    Check(
        "certificate-unreadable",
        BROKEN,
        "a Secret for certificates contains certificates",
        "Replicas that start now cannot serve.",
        _unreadable,
    ),
    Check("certificate-expired", BROKEN, "a certificate in use is valid now", _REFUSED, _expired),
    Check(
        "certificate-expiring",
        WARNING,
        "a certificate is renewed before four fifths of its life have passed",
        "Certificates are renewed at two thirds of their life: a later one is not being renewed.",
        _expiring,
    ),
)
