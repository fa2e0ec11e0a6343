"""The cluster's certificate authority, and the key that signs service account tokens."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=365)  # a developer keeps a cluster for as long as the machine is up
_CLOCK_SKEW = dt.timedelta(minutes=5)
_SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")


@dataclass(frozen=True, slots=True)
class KeyFiles:
    certificate: Path
    key: Path


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> Path:
    # Not PKCS8: the API server reads a token key only as "EC PRIVATE KEY".
    form = serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(pem)
    return path


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternatives(addresses: Sequence[str], names: Sequence[str]) -> x509.SubjectAlternativeName:
    alternatives: list[x509.GeneralName] = [x509.DNSName(each) for each in names]
    return x509.SubjectAlternativeName(
        [*alternatives, *(x509.IPAddress(ipaddress.ip_address(each)) for each in addresses)]
    )


class ClusterAuthority:
    """Signs all certificates of one cluster; clients and servers trust the same root."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name("halfcard-test-ca")
        self.certificate = folder / "ca.crt"
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        ca = self._builder(self._subject, self._key.public_key()).add_extension(constraints, critical=True)
        self._sign(ca, self.certificate)

    def bundle(self) -> str:
        """Returns the caBundle for a webhook's registration."""
        return self.bundle_of(self.certificate)

    @staticmethod
    def bundle_of(certificate: Path) -> str:
        return base64.b64encode(certificate.read_bytes()).decode()

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, life: dt.timedelta = _LIFETIME
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._subject).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - _CLOCK_SKEW).not_valid_after(now + life)

    def _sign(self, builder: x509.CertificateBuilder, path: Path) -> None:
        path.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _issue(
        self, file: str, subject: x509.Name, extensions: Sequence[x509.ExtensionType], life: dt.timedelta = _LIFETIME
    ) -> KeyFiles:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key.public_key(), life)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        pair = KeyFiles(self._folder / f"{file}.crt", _write_key(self._folder / f"{file}.key", key))
        self._sign(builder, pair.certificate)
        return pair

    def client(self, file: str, *, name: str, groups: Sequence[str], life: dt.timedelta = _LIFETIME) -> KeyFiles:
        """Issues a client certificate; Kubernetes reads the user from CN and the groups from O."""
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(file, _name(name, groups), [usage], life)

    def server(self, file: str, addresses: Sequence[str], names: Sequence[str] = _SERVICE_NAMES) -> KeyFiles:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return self._issue(file, _name(file), [_alternatives(addresses, names), usage])

    def peer(self, file: str, addresses: Sequence[str], names: Sequence[str]) -> KeyFiles:
        """Issues a certificate for a server that also calls others of its kind as a client."""
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(file, _name(file), [_alternatives(addresses, names), usage])

    def signing_key(self, file: str) -> Path:
        return _write_key(self._folder / f"{file}.key", ec.generate_private_key(ec.SECP256R1()))
