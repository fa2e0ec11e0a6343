"""What the certificates of a folder need now, and why.

Law: a pure function of what the files hold, the names wanted and the time. Each step leaves less to do: from
any contents, those of a crash between two writes included, the steps end at `Keep` or at `Refuse`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from certs.server_names import ServerNames, listed
from halfcard.names import OWN_DOMAIN

ORGANIZATION: Final = OWN_DOMAIN
"""In the subject of every certificate we make: anything else in the folder is somebody else's."""

BACKDATED: Final = timedelta(hours=1)
"""A certificate is valid from an hour before it was made: clocks of clients may be behind ours."""

AUTHORITY_LIFE: Final = timedelta(days=3650)
"""Long: whoever trusts our CA has to learn each new one."""

LEAF_LIFE: Final = timedelta(days=90)
"""Short: a stolen key is worth little for long, and renewal is practised four times a year."""

RETIREMENT: Final = timedelta(hours=1)
"""How long an old CA stays trusted after its last leaf was replaced: other replicas may still show one."""


_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


@dataclass(frozen=True, slots=True)
class Held:
    """The contents of the files; None where there is no file."""

    ca_crt: bytes | None = None
    ca_key: bytes | None = None
    tls_crt: bytes | None = None
    tls_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    reason: str


@dataclass(frozen=True, slots=True)
class Create:
    """A new CA and a new leaf; nothing that is held can be trusted any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class RenewLeaf:
    """A new leaf from the present CA; clients notice nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class RenewAuthority:
    """A new CA in front of the old ones that the leaf still needs; the leaf stays until it is due itself."""

    reason: str
    still_trusted: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class RetireAuthority:
    """The present CA alone: no leaf of an older one is in use."""

    reason: str
    still_trusted: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """The files belong to somebody else, whose keys we must not overwrite."""

    reason: str


Plan = Keep | Create | RenewLeaf | RenewAuthority | RetireAuthority | Refuse


def plan(held: Held, wanted: ServerNames, now: datetime) -> Plan:
    authorities, leaf = _certificates(held.ca_crt), next(iter(_certificates(held.tls_crt)), None)
    foreign = [file for file, found in (("ca.crt", authorities), ("tls.crt", [leaf])) if _foreign(found)]
    if foreign:
        return Refuse(f"{foreign[0]} was not issued by Halfcard")
    if flaw := _authority_flaw(held.ca_crt, authorities, now):
        return Create(flaw)
    issuers = tuple(authority for authority in authorities if leaf is not None and _signed(leaf, authority))
    if flaw := _key_flaw("ca", held.ca_key, authorities[0]) or _too_short(authorities[0], now):
        return RenewAuthority(flaw, _pems(issuers))
    if leaf is None:
        return RenewLeaf(_absence("tls.crt", held.tls_crt))
    if flaw := _leaf_flaw(held, leaf, issuers, wanted=wanted, now=now):
        return RenewLeaf(flaw)
    if _due(authorities[0], now):
        return RenewAuthority(_ageing("the CA", authorities[0]), _pems(issuers))
    return _judge_old_authorities(authorities, leaf, issuers, now=now)


def _judge_old_authorities(
    authorities: list[x509.Certificate],
    leaf: x509.Certificate,
    issuers: tuple[x509.Certificate, ...],
    *,
    now: datetime,
) -> Keep | RetireAuthority:
    replaced_at = leaf.not_valid_before_utc + BACKDATED
    needless = len(authorities) > 1 and issuers == (authorities[0],)
    if needless and now >= replaced_at + RETIREMENT:
        return RetireAuthority(f"no leaf of an older CA is in use since {replaced_at:%FT%TZ}", _pems((authorities[0],)))
    return Keep(f"valid until {leaf.not_valid_after_utc:%FT%TZ}")


def _authority_flaw(ca_crt: bytes | None, authorities: list[x509.Certificate], now: datetime) -> str | None:
    if not authorities:
        return _absence("ca.crt", ca_crt)
    if not _is_authority(authorities[0]):
        return "the certificate in ca.crt may not sign others"
    if not _signed(authorities[0], authorities[0]):
        return "the certificate in ca.crt is damaged: its own signature does not fit"
    return _outside_validity("the CA", authorities[0], now)


def _leaf_flaw(
    held: Held,
    leaf: x509.Certificate,
    issuers: tuple[x509.Certificate, ...],
    *,
    wanted: ServerNames,
    now: datetime,
) -> str | None:
    if flaw := _key_flaw("tls", held.tls_key, leaf) or _outside_validity("the leaf", leaf, now):
        return flaw
    if not issuers:
        return "the leaf was not signed by a CA in ca.crt"
    if (names := _names(leaf)) != wanted:
        return f"the leaf answers for {listed(names)}; wanted {listed(wanted)}"
    return _ageing("the leaf", leaf) if _due(leaf, now) else None


def _key_flaw(stem: str, key: bytes | None, certificate: x509.Certificate) -> str | None:
    if key is None:
        return f"{stem}.key is missing"
    try:
        of_key = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return f"{stem}.key holds no private key"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if of_key.public_bytes(*form) != certificate.public_key().public_bytes(*form):
        return f"{stem}.key does not belong to {stem}.crt"
    return None


def _outside_validity(who: str, certificate: x509.Certificate, now: datetime) -> str | None:
    if now < certificate.not_valid_before_utc:
        return f"{who} is valid only from {certificate.not_valid_before_utc:%FT%TZ}"
    if now >= certificate.not_valid_after_utc:
        return f"{who} expired at {certificate.not_valid_after_utc:%FT%TZ}"
    return None


def _too_short(authority: x509.Certificate, now: datetime) -> str | None:
    """A leaf must not outlive its CA, so such a CA may sign none."""
    short = authority.not_valid_after_utc < now + LEAF_LIFE
    return f"the CA ends at {authority.not_valid_after_utc:%FT%TZ}, before a new leaf would" if short else None


def _due(certificate: x509.Certificate, now: datetime) -> bool:
    """Two thirds of the life have passed: the last third is for noticing that renewal fails."""
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return now >= certificate.not_valid_before_utc + life * 2 / 3


def _ageing(who: str, certificate: x509.Certificate) -> str:
    return f"two thirds of the life of {who} have passed; it ends at {certificate.not_valid_after_utc:%FT%TZ}"


def _absence(file: str, contents: bytes | None) -> str:
    return f"{file} is missing" if contents is None else f"{file} holds no certificate"


def _certificates(pem: bytes | None) -> list[x509.Certificate]:
    try:
        found = x509.load_pem_x509_certificates(pem or b"")
        for certificate in found:  # these parts are parsed only when somebody looks
            _ = certificate.subject, certificate.issuer, certificate.extensions, certificate.public_key()
    except _UNREADABLE:
        return []
    return found


def _foreign(certificates: list[x509.Certificate] | list[x509.Certificate | None]) -> bool:
    return any(found is not None and not _ours(found) for found in certificates)


def _ours(certificate: x509.Certificate) -> bool:
    organizations = certificate.issuer.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    return [attribute.value for attribute in organizations] == [ORGANIZATION]


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _signed(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _names(leaf: x509.Certificate) -> ServerNames:
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    values = (name.value for name in found)
    return frozenset(value for value in values if isinstance(value, str | IPv4Address | IPv6Address))


def _pems(certificates: tuple[x509.Certificate, ...]) -> tuple[bytes, ...]:
    return tuple(certificate.public_bytes(Encoding.PEM) for certificate in certificates)
