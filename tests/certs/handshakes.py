"""Real TLS handshakes in memory, and other helpers of the certificate tests."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from certs.folder.certificate_folder import CertificateFiles


def trusting(bundle: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=bundle.decode())


def serving(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context


def shake_hands(files: CertificateFiles, *, trust: bytes, host: str) -> None:
    """Raises the errors of the client, which uses OpenSSL's strictest checks."""
    meet(trusting(trust), serving(files), host=host)


def meet(client_context: ssl.SSLContext, server_context: ssl.SSLContext, *, host: str) -> None:
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server]
    while waiting:
        waiting = [side for side in waiting if not _finished(side)]


def _finished(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(".")}


def foreign_certificate() -> bytes:
    """Returns a self-signed certificate of another tool."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody else")])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    draft = x509.CertificateBuilder(name, name, key.public_key(), 7, begin, begin + timedelta(days=365))
    return draft.sign(key, SHA256()).public_bytes(Encoding.PEM)
