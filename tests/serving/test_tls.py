from __future__ import annotations

import asyncio
import io
import socket
import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from serving.client_limits import ClientLimits
from serving.errors import CannotServeError
from serving.log import Log
from serving.tls import ReloadingContext, TlsFiles
from tests.serving.authority import NOW, Authority, Pair, write_pair
from tests.serving.conversation import Client, Echo, Server, server, trusting
from tests.waiting import until

AUTHORITY = Authority()
FIRST, SECOND = AUTHORITY.issue(), AUTHORITY.issue()


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return write_pair(tmp_path, FIRST)


async def served(running: Server, *, sni: str | None = "localhost") -> int:
    trust = trusting(AUTHORITY)
    trust.check_hostname = sni is not None
    client = await running.connect(trust, sni=sni or "")
    return client.served_serial()


async def test_new_handshakes_get_the_new_certificate_and_old_connections_go_on(files: TlsFiles) -> None:
    tls = ReloadingContext(files)
    async with server(Echo(), tls=tls) as running:
        old = await running.connect(trusting(AUTHORITY))
        assert old.served_serial() == FIRST.serial
        write_pair(files.cert.parent, SECOND)
        assert tls.reload().changed
        assert await served(running) == SECOND.serial
        assert (await old.ask()).status == 200


async def test_a_client_without_sni_gets_the_new_certificate_too(files: TlsFiles) -> None:
    tls = ReloadingContext(files)
    async with server(Echo(), tls=tls) as running:
        write_pair(files.cert.parent, SECOND)
        tls.reload()
        assert await served(running, sni=None) == SECOND.serial


@pytest.mark.parametrize(
    "bad",
    [
        Pair(SECOND.cert, FIRST.key, 0),
        Pair(b"", b"", 0),
        AUTHORITY.issue(not_after=NOW - timedelta(minutes=1)),
    ],
    ids=["two generations", "empty", "expired"],
)
async def test_an_invalid_pair_does_not_change_the_live_context(files: TlsFiles, bad: Pair) -> None:
    tls = ReloadingContext(files)
    async with server(Echo(), tls=tls) as running:
        write_pair(files.cert.parent, bad)
        changed, reason = tls.reload()
        assert not changed
        assert "the previous certificate stays in use" in reason
        assert str(files.cert) in reason
        assert await served(running) == FIRST.serial


def test_unchanged_files_change_nothing(files: TlsFiles) -> None:
    tls = ReloadingContext(files)
    write_pair(files.cert.parent, FIRST)
    assert tls.reload() == (False, "the files are unchanged")


def test_a_missing_file_keeps_the_previous_certificate(files: TlsFiles) -> None:
    tls = ReloadingContext(files)
    files.key.unlink()
    changed, reason = tls.reload()
    assert not changed
    assert "tls.key" in reason


def test_a_certificate_that_is_not_valid_yet_is_loaded_once_it_is(files: TlsFiles) -> None:
    now = NOW

    def clock() -> datetime:
        return now

    tls = ReloadingContext(files, clock=clock)
    write_pair(files.cert.parent, AUTHORITY.issue(not_before=NOW + timedelta(hours=1)))
    assert not tls.reload().changed
    now += timedelta(hours=2)
    assert tls.reload().changed


def test_a_process_cannot_start_with_an_invalid_pair(files: TlsFiles) -> None:
    write_pair(files.cert.parent, Pair(FIRST.cert, SECOND.key, 0))
    with pytest.raises(CannotServeError, match=r"tls\.crt.*does not belong.*kubernetes\.io/tls"):
        ReloadingContext(files)


def client_of(authority: Authority, folder: Path) -> ssl.SSLContext:
    pair = authority.issue(usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    (folder / "client.pem").write_bytes(pair.cert + pair.key)
    context = trusting(AUTHORITY)
    context.load_cert_chain(folder / "client.pem")
    return context


async def is_served(running: Server, context: ssl.SSLContext) -> bool:
    """In TLS 1.3 a client learns of its refusal only when it reads."""
    client: Client = await running.connect(context)
    try:
        return (await client.ask()).status == 200
    except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
        return False


async def test_the_client_ca_is_swapped_with_the_certificate(files: TlsFiles, tmp_path: Path) -> None:
    old, new = Authority("old clients"), Authority("new clients")
    client_ca = tmp_path / "client-ca.crt"
    client_ca.write_bytes(old.cert)
    tls = ReloadingContext(TlsFiles(files.cert, files.key, client_ca))
    async with server(Echo(), tls=tls) as running:
        assert await is_served(running, client_of(old, tmp_path))
        assert not await is_served(running, client_of(new, tmp_path))
        assert not await is_served(running, trusting(AUTHORITY))
        client_ca.write_bytes(new.cert)
        assert tls.reload().changed
        assert await is_served(running, client_of(new, tmp_path))
        assert not await is_served(running, client_of(old, tmp_path))


async def test_tls_1_2_is_refused(files: TlsFiles) -> None:
    old = trusting(AUTHORITY)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with server(Echo(), tls=ReloadingContext(files)) as running:
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await running.connect(old)


def refuse(port: int) -> None:
    """A blocking socket sends the alert that says why, as the clients of production do."""
    trust = trusting(Authority("somebody else"))
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        trust.wrap_socket(plain, server_hostname="localhost")


async def test_a_client_that_does_not_trust_the_server_is_logged(files: TlsFiles) -> None:
    async with server(Echo(), tls=ReloadingContext(files), limits=ClientLimits(header_s=0.1)) as running:
        await asyncio.to_thread(refuse, running.address.port)
        await until(lambda: "ended early" in running.log.getvalue(), what="the log line")
    reasons = [reason for event in running.events() for reason in event.get("reasons", {})]
    assert reasons == ["handshake failed: TLSV1_ALERT_UNKNOWN_CA"]


def swap_like_kubelet(volume: Path, generation: int, pair: Pair) -> None:
    """New files in a new folder, then one rename of the symlink that the visible names go through."""
    fresh = volume / f"..{generation}"
    fresh.mkdir()
    write_pair(fresh, pair)
    (volume / "..data_tmp").symlink_to(fresh.name)
    (volume / "..data_tmp").replace(volume / "..data")


async def test_rotation_under_load_fails_no_handshake(tmp_path: Path) -> None:
    swap_like_kubelet(tmp_path, 0, FIRST)
    files = TlsFiles(tmp_path / "..data" / "tls.crt", tmp_path / "..data" / "tls.key")
    tls = ReloadingContext(files, poll_s=0.01)
    seen: set[int] = set()

    def is_served(pair: Pair) -> Callable[[], bool]:
        return lambda: pair.serial in seen

    generations = [FIRST, *(AUTHORITY.issue() for _ in range(5))]
    trust = trusting(AUTHORITY)

    async def knock(running: Server, stop: asyncio.Event) -> None:
        while not stop.is_set():
            client = await running.connect(trust)
            seen.add(client.served_serial())
            assert (await client.ask()).status == 200
            client.close()

    async with server(Echo(), tls=tls) as running, asyncio.TaskGroup() as clients:
        stop = asyncio.Event()
        for _ in range(3):
            clients.create_task(knock(running, stop))
        for number, pair in enumerate(generations):
            if number:
                swap_like_kubelet(tmp_path, number, pair)
            await until(is_served(pair), what=f"generation {number} is served")
        stop.set()
    assert seen == {pair.serial for pair in generations}


async def test_a_problem_is_logged_once_and_then_the_swap(files: TlsFiles) -> None:
    written = io.StringIO()
    looks = 0

    def clock() -> datetime:
        nonlocal looks
        looks += 1
        return NOW

    tls = ReloadingContext(files, poll_s=0.005, clock=clock)
    watching = asyncio.create_task(tls.watch(Log(stream=written)))
    files.key.write_bytes(SECOND.key)
    await until(lambda: looks > 3, what="three looks at the torn pair")
    assert written.getvalue().count("not swapped") == 1
    files.cert.write_bytes(SECOND.cert)
    await until(lambda: "certificate swapped" in written.getvalue(), what="the swap")
    watching.cancel()
