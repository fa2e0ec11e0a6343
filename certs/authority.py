"""Creates a CA and the leaves it signs: ECDSA P-256, valid from an hour ago."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from certs.certificate_checks import BACKDATED, ORGANIZATION
from certs.lifetimes import AUTHORITY_LIFE, LONG_AUTHORITY_LIFE, ChainRules, LeafRules
from certs.server_names import ServerName

SERIAL_BITS: Final = 128


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


def make_authority(rules: ChainRules, *, now: datetime) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    serial = _serial()
    subject = _subject(f"Halfcard CA {serial % 2**32:08x}")  # distinguishes the CAs of a bundle for readers
    end = now + (LONG_AUTHORITY_LIFE if rules.is_long_lived else AUTHORITY_LIFE)
    draft = (
        _draft(subject, key.public_key(), now=now, end=end)
        .serial_number(serial)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    return _sealed(draft, key, signer=key)


def make_leaf(authority: KeyPair, rules: LeafRules, *, now: datetime) -> KeyPair:
    """Returns a leaf that expires with its CA at the latest."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = load_pem_private_key(authority.key, password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError(f"the CA's key is a {type(signer).__name__}; Halfcard creates only elliptic curve keys")
    key = ec.generate_private_key(ec.SECP256R1())
    alternatives = [_general_name(name) for name in sorted(rules.names, key=str)]
    draft = (
        _draft(_subject("Halfcard"), key.public_key(), now=now, end=min(now + rules.life, issuer.not_valid_after_utc))
        .serial_number(_serial())
        .issuer_name(issuer.subject)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage(sorted(rules.uses, key=str)), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return _sealed(draft, key, signer=signer)


def _draft(
    subject: x509.Name, public_key: ec.EllipticCurvePublicKey, *, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public_key)
        .not_valid_before(now - BACKDATED)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _sealed(
    draft: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, *, signer: ec.EllipticCurvePrivateKey
) -> KeyPair:
    return KeyPair(
        certificate=draft.sign(signer, SHA256()).public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _serial() -> int:
    return secrets.randbits(SERIAL_BITS) or 1  # zero is no serial number


def _subject(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _general_name(name: ServerName) -> x509.GeneralName:
    return x509.DNSName(name) if isinstance(name, str) else x509.IPAddress(name)


_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _usage(*granted: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in granted for usage in _USAGES})
