"""Checks whether a certificate chain and a key are a pair that a TLS server can use at a given time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID


class UnusablePairError(Exception):
    """The pair cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class ServedLeaf:
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime


def read_pair(cert_pem: bytes, key_pem: bytes, *, at: datetime) -> ServedLeaf:
    certificate = _first_certificate(cert_pem)
    _require_same_key(certificate, key_pem)
    _require_server_use(certificate)
    leaf = ServedLeaf(_names(certificate), certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    if not leaf.not_before <= at <= leaf.not_after:
        validity = f"{leaf.not_before:%FT%TZ} to {leaf.not_after:%FT%TZ}"
        raise UnusablePairError(f"the certificate is valid from {validity}, which does not include the present")
    return leaf


def _first_certificate(cert_pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(cert_pem)[0]
    except ValueError as error:
        raise UnusablePairError(f"the certificate file contains no PEM certificate ({error})") from error


def _require_same_key(certificate: x509.Certificate, key_pem: bytes) -> None:
    try:
        of_key = load_pem_private_key(key_pem, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusablePairError(f"the key file contains no unencrypted PEM private key ({error})") from error
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if of_key.public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise UnusablePairError("the key does not belong to the certificate (two generations of the Secret?)")


def _require_server_use(certificate: x509.Certificate) -> None:
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return
    if ExtendedKeyUsageOID.SERVER_AUTH not in usages:
        raise UnusablePairError("the certificate's extended key usage lacks serverAuth")


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        subjects = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        raise UnusablePairError("the certificate has no subject alternative name; clients ignore the CN") from None
    return tuple(str(name.value) for name in subjects)
