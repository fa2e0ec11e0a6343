"""`python -m deviceplugin.certificate NAME`: prints a new certificate, signed by itself, and its key, both in PEM."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_VALID_FOR: Final = timedelta(days=3650)  # far longer than any process lives
_CLOCKS_DIFFER_BY: Final = timedelta(days=1)
_LONGEST_COMMON_NAME: Final = 64


def issue(name: str, at: datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_COMMON_NAME])])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(at - _CLOCKS_DIFFER_BY)
        .not_valid_after(at + _VALID_FOR)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM) + pem


if __name__ == "__main__":
    sys.stdout.buffer.write(issue(sys.argv[1], datetime.now(UTC)))
