"""Certificate authorities and leaves for tests: real P-256 keys, real files."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from serving.tls import TlsFiles

NOW = datetime.now(UTC)
LOOPBACK = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])

_SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)
"""Python 3.13 requires this extension of a CA."""


@dataclass(frozen=True)
class Pair:
    cert: bytes
    key: bytes
    serial: int


class Authority:
    def __init__(self, name: str = "test CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)
        key_id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = builder.add_extension(key_id, critical=False)
        self.cert = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def issue(
        self,
        *,
        names: x509.SubjectAlternativeName | None = LOOPBACK,
        usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
        not_before: datetime = NOW - timedelta(hours=1),
        not_after: datetime = NOW + timedelta(days=1),
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(self._name, _name("leaf"), key.public_key(), not_before, not_after)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        cert = builder.sign(self._key, hashes.SHA256())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Pair(cert.public_bytes(Encoding.PEM), pem, cert.serial_number)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    issuer: x509.Name,
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    not_before: datetime = NOW - timedelta(hours=1),
    not_after: datetime = NOW + timedelta(days=1),
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().issuer_name(issuer).subject_name(subject).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(not_before).not_valid_after(not_after)


def write_pair(folder: Path, pair: Pair) -> TlsFiles:
    files = TlsFiles(cert=folder / "tls.crt", key=folder / "tls.key")
    files.cert.write_bytes(pair.cert)
    files.key.write_bytes(pair.key)
    return files
