from __future__ import annotations

import fcntl
import os
import signal
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from certs.certificate_checks import BACKDATED
from certs.folder.certificate_folder import CertificateFiles, CertificateFolderError, FolderOutcome, ensure
from certs.lifetimes import AUTHORITY_LIFE, LAST_CALL, LEAF_LIFE, RETIREMENT
from certs.server_names import server_names
from serving import shared_folder
from tests.certs.handshakes import contents, foreign_certificate, shake_hands

START = datetime.now(UTC).replace(microsecond=0)  # the handshakes below go by the real clock
CA_DUE_AFTER = (AUTHORITY_LIFE + BACKDATED) * 2 / 3
LEAF_OF_OLD_CA = START - timedelta(days=10)
LONG_AGO = LEAF_OF_OLD_CA - CA_DUE_AFTER + timedelta(days=1)
"""A CA of then is due now, and was not yet when a leaf of ten days ago was made."""
LEAF_DUE = LEAF_OF_OLD_CA + LEAF_LIFE - LAST_CALL
HOST = "halfcard.svc"
NAMES = server_names([HOST, "127.0.0.1"])


def keep(folder: Path, now: datetime = START) -> FolderOutcome:
    return ensure(folder, names=NAMES, now=now)


def test_a_first_start_makes_a_folder_that_clients_can_trust(tmp_path: Path) -> None:
    outcome = keep(tmp_path / "new" / "tls")

    assert outcome.changed
    assert outcome.reason.startswith("ca.crt is missing; tls.crt is missing; valid until ")
    for host in (HOST, "127.0.0.1"):
        shake_hands(outcome.files, trust=outcome.files.ca.read_bytes(), host=host)


def test_a_client_refuses_the_certificate_for_another_name(tmp_path: Path) -> None:
    files = keep(tmp_path).files

    for host in ("other.svc", "127.0.0.2"):
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(files, trust=files.ca.read_bytes(), host=host)


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    umask = os.umask(0)
    try:
        keep(folder)
    finally:
        os.umask(umask)

    modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644, "tls.key": 0o600, ".lock": 0o600}


def test_a_second_check_changes_nothing(tmp_path: Path) -> None:
    keep(tmp_path)
    before = contents(tmp_path)

    assert not keep(tmp_path).changed
    assert contents(tmp_path) == before


def test_a_check_that_finds_nothing_to_do_needs_no_lock(tmp_path: Path) -> None:
    keep(tmp_path)
    with (tmp_path / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not keep(tmp_path).changed


def test_a_renewed_leaf_is_trusted_by_those_who_know_the_ca(tmp_path: Path) -> None:
    keep(tmp_path, START - LEAF_LIFE)
    trust = (tmp_path / "ca.crt").read_bytes()

    outcome = keep(tmp_path)

    assert outcome.reason.startswith("the leaf expired at ")
    assert outcome.files.ca.read_bytes() == trust
    shake_hands(outcome.files, trust=trust, host=HOST)


def test_a_renewed_ca_fails_no_client_at_any_moment(tmp_path: Path) -> None:
    """Old trust and new trust both accept whatever leaf is shown, until the old CA has no leaf left."""
    keep(tmp_path, LONG_AGO)
    files = CertificateFiles(tmp_path)
    old_trust = files.ca.read_bytes()
    keep(tmp_path, LEAF_OF_OLD_CA)
    assert files.ca.read_bytes() == old_trust
    keep(tmp_path, START)
    new_trust = files.ca.read_bytes()

    assert new_trust.endswith(old_trust) and new_trust != old_trust
    for trust in (old_trust, new_trust):
        shake_hands(files, trust=trust, host=HOST)

    keep(tmp_path, LEAF_DUE - timedelta(seconds=1))
    shake_hands(files, trust=old_trust, host=HOST)
    keep(tmp_path, LEAF_DUE)  # who knows the old CA alone had all the time there was
    assert files.ca.read_bytes() == new_trust
    keep(tmp_path, LEAF_DUE + RETIREMENT)
    assert files.ca.read_bytes() == new_trust.removesuffix(old_trust)


def test_a_folder_unused_for_ten_years_gets_a_new_ca(tmp_path: Path) -> None:
    keep(tmp_path, START - AUTHORITY_LIFE)

    outcome = keep(tmp_path)

    assert outcome.reason.startswith("the CA expired at ")
    shake_hands(outcome.files, trust=outcome.files.ca.read_bytes(), host=HOST)


def test_a_certificate_of_another_issuer_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_bytes(foreign_certificate())
    before = contents(tmp_path)

    with pytest.raises(CertificateFolderError, match=r"tls.crt was not issued by Halfcard; .* name another folder"):
        keep(tmp_path)

    assert contents(tmp_path) == before


def test_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(CertificateFolderError, match=r"got mode 0777; .*: chmod 700 "):
        keep(tmp_path)


def test_a_folder_that_cannot_be_created_is_reported_with_the_cause(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(CertificateFolderError, match=r"file/tls: Not a directory; .*may write"):
        keep(tmp_path / "file" / "tls")


def test_a_lock_that_is_never_released_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_folder, "LOCK_PATIENCE_S", 0.05)
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CertificateFolderError, match="another process has held its lock"):
            keep(tmp_path)


DIE_AT_A_SYNC = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
from certs.folder.certificate_folder import ensure
from certs.server_names import server_names

folder, now, left = Path(sys.argv[1]), datetime.fromisoformat(sys.argv[2]), int(sys.argv[3])
real_fsync = os.fsync

def fsync(descriptor):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    real_fsync(descriptor)

os.fsync = fsync
ensure(folder, names=server_names(sys.argv[4:]), now=now)
"""
"""Each file is synced before its rename, its folder after: a kill at each sync stops between any two writes."""


def killed_at_sync(number: int, folder: Path) -> bool:
    names = [str(name) for name in NAMES]
    arguments = [sys.executable, "-c", DIE_AT_A_SYNC, str(folder), START.isoformat(), str(number), *names]
    return subprocess.run(arguments, check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("sync", range(1, 9))
def test_a_first_start_killed_between_any_two_writes_is_repaired(sync: int, tmp_path: Path) -> None:
    assert killed_at_sync(sync, tmp_path)

    files = keep(tmp_path).files

    shake_hands(files, trust=files.ca.read_bytes(), host=HOST)
    assert set(contents(tmp_path)) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert not keep(tmp_path).changed


@pytest.mark.parametrize("sync", range(1, 5))
def test_a_ca_renewal_killed_between_any_two_writes_keeps_every_client_connected(sync: int, tmp_path: Path) -> None:
    keep(tmp_path, LONG_AGO)
    old_trust = (tmp_path / "ca.crt").read_bytes()
    ensure(tmp_path, names=NAMES, now=LEAF_OF_OLD_CA)
    assert killed_at_sync(sync, tmp_path)

    files = keep(tmp_path).files

    for trust in (old_trust, files.ca.read_bytes()):
        shake_hands(files, trust=trust, host=HOST)
    assert len(x509.load_pem_x509_certificates(files.ca.read_bytes())) == 2


def test_processes_that_start_at_once_end_with_one_ca(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    command = [sys.executable, "-m", "certs", "ensure", str(folder), "--name", HOST]

    starts = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [start.communicate(timeout=30)[0] for start in starts]

    assert [start.returncode for start in starts] == [0] * 4
    assert sum(": renewed: " in line for line in said) == 1
    assert not ensure(folder, names=server_names([HOST]), now=datetime.now(UTC)).changed
