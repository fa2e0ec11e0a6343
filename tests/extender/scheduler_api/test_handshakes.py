"""The extender learns of each handshake: the client's certificate, or why it failed."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from extender.scheduler_api.contact_log import failure_of
from extender.scheduler_api.scheduler_contact import HandshakeFailure
from serving.tls import ReloadingContext, TlsFiles
from tests.serving.authority import NOW, Authority, Pair, write_pair
from tests.serving.conversation import Echo, Server, server, trusting
from tests.waiting import until

SERVERS, CLIENTS, OTHERS = Authority(), Authority("clients"), Authority("others")
CLIENT: Final = CLIENTS.issue(usage=ExtendedKeyUsageOID.CLIENT_AUTH)


@dataclass
class Observer:
    serials: list[int] = field(default_factory=list)
    failures: list[HandshakeFailure] = field(default_factory=list)

    def succeeded(self, address: str, certificate: bytes | None) -> None:
        assert address == "127.0.0.1" and certificate is not None
        self.serials.append(x509.load_der_x509_certificate(certificate).serial_number)

    def failed(self, address: str, error: BaseException) -> None:
        assert address == "127.0.0.1"
        if (why := failure_of(error)) is not None:
            self.failures.append(why)


@pytest.fixture
def tls(tmp_path: Path) -> ReloadingContext:
    files = write_pair(tmp_path, SERVERS.issue())
    trusted = tmp_path / "client-ca.crt"
    trusted.write_bytes(CLIENTS.cert)
    return ReloadingContext(TlsFiles(files.cert, files.key, trusted))


def client(folder: Path, pair: Pair | None) -> ssl.SSLContext:
    context = trusting(SERVERS)
    if pair is not None:
        (folder / "client.pem").write_bytes(pair.cert + pair.key)
        context.load_cert_chain(folder / "client.pem")
    return context


async def refuse(running: Server, context: ssl.SSLContext | None) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        await (await running.connect(context)).ask()


async def test_an_observer_sees_the_certificate_of_a_client(tls: ReloadingContext, tmp_path: Path) -> None:
    observer = Observer()
    async with server(Echo(), tls=tls, handshakes=observer) as running:
        assert (await (await running.connect(client(tmp_path, CLIENT))).ask()).status == 200
        assert (observer.serials, observer.failures) == ([CLIENT.serial], [])


FAILURES: Final[dict[HandshakeFailure, Pair | None]] = {
    HandshakeFailure.EXPIRED: CLIENTS.issue(
        usage=ExtendedKeyUsageOID.CLIENT_AUTH, not_before=NOW - timedelta(days=9), not_after=NOW - timedelta(days=1)
    ),
    HandshakeFailure.UNTRUSTED: OTHERS.issue(usage=ExtendedKeyUsageOID.CLIENT_AUTH),
    HandshakeFailure.MISSING: None,
}


@pytest.mark.parametrize(("why", "pair"), FAILURES.items(), ids=FAILURES)
async def test_an_observer_sees_why_a_handshake_failed(
    tls: ReloadingContext, tmp_path: Path, why: HandshakeFailure, pair: Pair | None
) -> None:
    observer = Observer()
    async with server(Echo(), tls=tls, handshakes=observer) as running:
        await refuse(running, client(tmp_path, pair))
        await until(lambda: observer.failures == [why], what="the failure to be observed")
        assert observer.serials == []


async def test_plain_http_is_recognised(tls: ReloadingContext) -> None:
    observer = Observer()
    async with server(Echo(), tls=tls, handshakes=observer) as running:
        await refuse(running, None)
        await until(lambda: observer.failures == [HandshakeFailure.PLAIN], what="the failure to be observed")


def test_errors_without_a_certificate_are_classified() -> None:
    refused = ssl.SSLError(1, "x")
    refused.reason = "TLSV1_ALERT_UNKNOWN_CA"
    assert failure_of(refused) is HandshakeFailure.DISTRUSTED
    assert failure_of(ssl.SSLError(1, "x")) is HandshakeFailure.OTHER
    assert failure_of(ConnectionAbortedError()) is HandshakeFailure.TIMEOUT


@pytest.mark.parametrize("error", [ConnectionResetError(), asyncio.CancelledError(), OSError()])
def test_clients_that_go_away_are_no_failures(error: BaseException) -> None:
    assert failure_of(error) is None
