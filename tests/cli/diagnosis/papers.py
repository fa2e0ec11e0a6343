"""Certificates of a test's own, with any times."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

_YEAR = timedelta(days=365)


class Paper(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


def authority(since: datetime, life: timedelta = 10 * _YEAR) -> Paper:
    return _made("ca", (), since, life, None)


def leaf(by: Paper, name: str, since: datetime, life: timedelta = timedelta(days=90), *, title: str = "leaf") -> Paper:
    return _made(title, (name,), since, life, by)


def _made(title: str, answers_for: tuple[str, ...], since: datetime, life: timedelta, by: Paper | None) -> Paper:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, title)])
    names = x509.SubjectAlternativeName([x509.DNSName(name) for name in answers_for])
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(since + life)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .add_extension(names, critical=False)
    )
    return Paper(built.sign(by.key if by else key, hashes.SHA256()), key)
