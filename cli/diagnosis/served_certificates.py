"""Does the API server trust what the webhook shows, and for how long still?"""

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

from .finding import Check, FindingSeverity, FoundFault, several
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
"""And the entry that holds certificates."""

_SERVED_NAME: Final = f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}.svc"
_LEFT: Final = 1 / 5
"""Of a life: certificates are renewed when a third is left, so that by then nobody has done it."""

_REPAIR: Final = "see why nobody renews it: the log of who keeps the certificates says so"
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
            fix = "put the CA that signed the webhook's certificate there, or see why what injects it does not"
            yield FoundFault(bundle.where, "nothing", fix, REGISTER)


def _garbage(snapshot: Snapshot) -> Iterator[FoundFault]:
    for bundle in _bundles(snapshot):
        if bundle.text and not bundle.certificates():
            yield FoundFault(bundle.where, "no certificate can be read there", "put the CA there, as PEM", REGISTER)


def _outlived(snapshot: Snapshot) -> Iterator[FoundFault]:
    for bundle in _bundles(snapshot):
        found = bundle.certificates()
        if found and not any(_holds(each, snapshot.now) for each in found):
            ended = max(each.not_valid_after_utc for each in found)
            yield FoundFault(
                bundle.where, f"all of it ended at {_time(ended)}", "make a new CA, and register it", REGISTER
            )


def _mismatch(snapshot: Snapshot) -> Iterator[FoundFault]:
    chain = certificates((snapshot.secrets.get(names.ADMISSION_TLS) or {}).get(CHAIN_FILE, b""))
    if not chain:
        return
    for bundle in _bundles(snapshot):
        trusted = [each for each in bundle.certificates() if _holds(each, snapshot.now)]
        if trusted and not any((is_signed_by(each, by) or each == by) for each in chain for by in trusted):
            got = f"none of its {len(trusted)} certificates signed what Secret {names.ADMISSION_TLS} holds"
            yield FoundFault(bundle.where, got, f"put {CA_FILE} of that Secret's signer there", REGISTER)
    if _SERVED_NAME not in (answers_for := names_of(chain[0])):
        got = f"answers for {listed(answers_for)}"
        yield FoundFault(_place(names.ADMISSION_TLS), got, f"make one that answers for {_SERVED_NAME}")


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
            fix = "delete the Secret where Halfcard keeps it: it is made anew"
            yield FoundFault(_place(secret), f"{entry} holds no certificate", fix)


def _expired(snapshot: Snapshot) -> Iterator[FoundFault]:
    for secret, entry, pem in _kept(snapshot):
        for certificate in certificates(pem)[:1]:
            if flaw := outside_validity(entry, certificate, snapshot.now):
                yield FoundFault(_place(secret), flaw, _REPAIR, _STATUS)


def _expiring(snapshot: Snapshot) -> Iterator[FoundFault]:
    for secret, entry, pem in _kept(snapshot):
        for certificate in certificates(pem)[:1]:
            if _holds(certificate, snapshot.now) and _is_late(certificate, snapshot.now):
                got = f"{entry} ends at {_time(certificate.not_valid_after_utc)}"
                yield FoundFault(_place(secret), got, _REPAIR, _STATUS)
    for bundle in _bundles(snapshot):
        valid = [each for each in bundle.certificates() if _holds(each, snapshot.now)]
        if valid and all(_is_late(each, snapshot.now) for each in valid):
            ends = max(each.not_valid_after_utc for each in valid)
            yield FoundFault(
                bundle.where, f"the last of it ends at {_time(ends)}", "make a new CA, and register both", _STATUS
            )


def _is_late(certificate: x509.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < life * _LEFT


def _place(secret: str) -> str:
    return f"Secret {names.NAMESPACE}/{secret}"


def _time(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


_BROKEN, _WARNING = FindingSeverity.BROKEN, FindingSeverity.WARNING
_REFUSED: Final = "GPU pods are refused while the API server cannot trust the webhook."

CHECKS: Final[tuple[Check, ...]] = (
    Check("ca-bundle-empty", _BROKEN, "a webhook names the CA that it trusts", _REFUSED, _empty),
    Check("ca-bundle-garbage", _BROKEN, "a caBundle holds certificates as PEM", _REFUSED, _garbage),
    Check("ca-bundle-expired", _BROKEN, "a CA of the caBundle holds now", _REFUSED, _outlived),
    Check(
        "certificate-mismatch",
        _BROKEN,
        "the CAs of the caBundle verify the certificate that is served, by the Service's name",
        f"{_REFUSED} Needs the right to read the Secret; without it `webhook-distrusted` says the same.",
        _mismatch,
    ),
    Check(
        "certificate-unreadable",
        _BROKEN,
        "a Secret of certificates holds certificates",
        "Replicas that start cannot serve.",
        _unreadable,
    ),
    Check("certificate-expired", _BROKEN, "a certificate that is in use holds now", _REFUSED, _expired),
    Check(
        "certificate-expiring",
        _WARNING,
        "a certificate is renewed before four fifths of its life have passed",
        "They are renewed at two thirds: who is later has nobody who renews him.",
        _expiring,
    ),
)
