"""Checks that the API server trusts the certificate that the webhook serves."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Final, NamedTuple

from cryptography import x509

from certs.certificate_checks import certificates, is_signed_by, names_of, outside_validity
from certs.server_names import listed
from halfcard import names

from ..causes import NOT_KEPT
from ..finding import BROKEN, Check, FoundFault, several
from ..snapshot import Snapshot
from ..webhooks.registered_webhooks import KEEPERS, Registered, has_controller, register, registered

CA_FILE: Final = "ca.crt"
CHAIN_FILE: Final = "tls.crt"
REFUSED: Final = "GPU pods are refused while the API server cannot trust the webhook."

_SERVED_NAME: Final = f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}.svc"


class Bundle(NamedTuple):
    """The CA bundle of webhooks of one configuration; `places` are their numbers in it."""

    where: str
    text: str
    configuration: str
    places: tuple[int, ...]

    def certificates(self) -> list[x509.Certificate]:
        try:
            return certificates(base64.b64decode(self.text, validate=True))
        except binascii.Error:
            return []

    def emptied(self) -> str:
        """Returns the command that empties it; nothing is admitted unchecked meanwhile."""
        paths = [f"/webhooks/{place}/clientConfig/caBundle" for place in self.places]
        patch = json.dumps([{"op": "add", "path": path, "value": ""} for path in paths], separators=(",", ":"))
        return f"kubectl patch {self.configuration.lower()} --type json -p '{patch}'"


def bundles(snapshot: Snapshot) -> Iterator[Bundle]:
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
        yield Bundle(f"caBundle of {configuration}{which}", text, configuration, tuple(each.place for each in those))


def _trusted(found: Registered) -> tuple[str, str]:
    return found.configuration, str(found.client.get("caBundle") or "")


# --- what is trusted -------------------------------------------------------------------------------------------------


def _empty(snapshot: Snapshot) -> Iterator[FoundFault]:
    for bundle in bundles(snapshot):
        if not bundle.text:
            yield _untrusted(snapshot, bundle, "is empty", "write the CA that signed the webhook's certificate there")


def _garbage(snapshot: Snapshot) -> Iterator[FoundFault]:
    for bundle in bundles(snapshot):
        if bundle.text and not bundle.certificates():
            yield _untrusted(snapshot, bundle, "no certificate can be read there", "write the CA there, as PEM")


def _outlived(snapshot: Snapshot) -> Iterator[FoundFault]:
    for bundle in bundles(snapshot):
        found = bundle.certificates()
        if found and not any(holds(each, snapshot.now) for each in found):
            ended = max(each.not_valid_after_utc for each in found)
            got = f"all its CAs expired at {written_time(ended)}"
            yield _untrusted(snapshot, bundle, got, "make a new CA, and register it")


def _mismatch(snapshot: Snapshot) -> Iterator[FoundFault]:
    chain = certificates((snapshot.secrets.get(names.ADMISSION_TLS) or {}).get(CHAIN_FILE, b""))
    if not chain:
        return
    for bundle in bundles(snapshot):
        trusted = [each for each in bundle.certificates() if holds(each, snapshot.now)]
        if trusted and not any((is_signed_by(each, by) or each == by) for each in chain for by in trusted):
            got = f"none of its {len(trusted)} certificates signed the certificate in Secret {names.ADMISSION_TLS}"
            yield _untrusted(snapshot, bundle, got, f"write the {CA_FILE} of that certificate's CA there")
    if _SERVED_NAME not in (answers_for := names_of(chain[0])):
        got = f"its certificate is for {listed(answers_for)}"
        fix = f"make a certificate for {_SERVED_NAME}"
        yield FoundFault(secret_place(names.ADMISSION_TLS), got, fix, about=names.ADMISSION_SERVICE, by=KEEPERS)


def _untrusted(snapshot: Snapshot, bundle: Bundle, got: str, fix: str) -> FoundFault:
    """The certificate controller fills an emptied caBundle at once, but leaves that of another issuer alone."""
    command = register(snapshot)
    if has_controller(snapshot):
        fix, command = f"{fix}: empty it, and the certificate controller does", bundle.emptied()
    return FoundFault(bundle.where, got, fix, command, names.ADMISSION_SERVICE, KEEPERS)


def holds(certificate: x509.Certificate, now: datetime) -> bool:
    return outside_validity("", certificate, now) is None


def secret_place(secret: str) -> str:
    return f"Secret {names.NAMESPACE}/{secret}"


def written_time(when: datetime) -> str:
    return f"{when:%Y-%m-%dT%H:%M:%SZ}"


CHECKS: Final[tuple[Check, ...]] = (
    Check("ca-bundle-empty", BROKEN, "the caBundle of a webhook is not empty", REFUSED, _empty, NOT_KEPT),
    Check("ca-bundle-garbage", BROKEN, "a caBundle contains certificates as PEM", REFUSED, _garbage, NOT_KEPT),
    Check("ca-bundle-expired", BROKEN, "a CA of the caBundle is valid now", REFUSED, _outlived, NOT_KEPT),
    Check(
        "certificate-mismatch",
        BROKEN,
        "the CAs of the caBundle verify the served certificate, for the Service's name",
        f"{REFUSED} Needs the right to read the Secret; without it `webhook-distrusted` says the same.",
        _mismatch,
        unless=NOT_KEPT,
    ),
)
