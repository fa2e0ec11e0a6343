"""Reads certificates and keys, and describes their problems in a few words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.server_names import ServerNames
from halfcard.names import OWN_DOMAIN

ORGANIZATION: Final = OWN_DOMAIN
"""The organization in the subject of Halfcard's certificates; any other certificate belongs to another issuer."""

BACKDATED: Final = timedelta(hours=1)
"""A certificate is valid from an hour before its creation: clocks of clients may be behind."""

Uses = frozenset[x509.ObjectIdentifier]
SERVER: Final[Uses] = frozenset({ExtendedKeyUsageOID.SERVER_AUTH})
CLIENT: Final[Uses] = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH})

_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)

# --- contents ---------------------------------------------------------------------------------------------------


def certificates(pem: bytes | None) -> list[x509.Certificate]:
    """Decodes the certificates; empty where one of them is unreadable."""
    try:
        found = x509.load_pem_x509_certificates(pem or b"")
        for certificate in found:  # these parts are parsed only on access
            _ = certificate.subject, certificate.issuer, certificate.extensions, certificate.public_key()
    except _UNREADABLE:
        return []
    return found


def pem(found: Iterable[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in found)


def is_ours(certificate: x509.Certificate) -> bool:
    organizations = certificate.issuer.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    return [attribute.value for attribute in organizations] == [ORGANIZATION]


def made_at(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + BACKDATED


def is_signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def names_of(leaf: x509.Certificate) -> ServerNames:
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    values = (name.value for name in found)
    return frozenset(value for value in values if isinstance(value, str | IPv4Address | IPv6Address))


def uses_of(leaf: x509.Certificate) -> Uses:
    try:
        return frozenset(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return frozenset()


# --- problems -----------------------------------------------------------------------------------------


def missing(file: str, contents: bytes | None) -> str:
    return f"{file} is missing" if contents is None else f"{file} contains no certificate"


def authority_problem(authority: x509.Certificate, now: datetime) -> str | None:
    if not _is_authority(authority):
        return "the certificate in ca.crt may not sign others"
    if not isinstance(authority.public_key(), ec.EllipticCurvePublicKey):
        return "the CA's key is no elliptic curve key"
    if not is_signed_by(authority, authority):
        return "the certificate in ca.crt is damaged: its signature is invalid"
    return outside_validity("the CA", authority, now)


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def key_problem(stem: str, key: bytes | None, certificate: x509.Certificate) -> str | None:
    if key is None:
        return f"{stem}.key is missing"
    try:
        of_key = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return f"{stem}.key contains no private key"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if of_key.public_bytes(*form) != certificate.public_key().public_bytes(*form):
        return f"{stem}.key does not belong to {stem}.crt"
    return None


def outside_validity(who: str, certificate: x509.Certificate, now: datetime) -> str | None:
    if now < certificate.not_valid_before_utc:
        return f"{who} is valid only from {certificate.not_valid_before_utc:%FT%TZ}"
    if now >= certificate.not_valid_after_utc:
        return f"{who} expired at {certificate.not_valid_after_utc:%FT%TZ}"
    return None


def renewal_due(who: str, certificate: x509.Certificate, now: datetime) -> str | None:
    """Returns why to renew, after two thirds of the life; the last third leaves time to notice failures."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begin + (end - begin) * 2 / 3:
        return None
    return f"two thirds of the life of {who} have passed; it ends at {end:%FT%TZ}"
