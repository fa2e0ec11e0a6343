"""The script that keeps the scheduler's copy of its certificate fresh, with a kubectl that prints a Secret."""

from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT
from tests.docs.shell import Shell

SCRIPT: Final = ROOT / "deploy" / "scheduler" / "copy-certificate.sh"
FIRST: Final = {"ca.crt": "CA 1\n", "tls.key": "key 1\n", "tls.crt": "certificate 1\n"}


@dataclass
class Machine:
    """A machine with the script, and a cluster with the Secret."""

    shell: Shell

    @property
    def copies(self) -> Path:
        return self.shell.folder / "halfcard"

    def keep(self, entries: dict[str, str]) -> None:
        """Stores the Secret; empty entries are those of a Secret that is being created."""
        words = " ".join(base64.b64encode(text.encode()).decode() for text in entries.values())
        self.shell.program("kubectl", f"echo '{words}'")

    def copy(self) -> subprocess.CompletedProcess[str]:
        return self.shell.run(f'"{SCRIPT}" "{self.copies}"')

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.copies.iterdir()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(Shell(tmp_path))
    machine.keep(FIRST)
    return machine


def test_the_first_run_makes_a_folder_that_only_its_owner_reads(machine: Machine) -> None:
    done = machine.copy()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.files() == FIRST
    assert {path.stat().st_mode & 0o777 for path in machine.copies.iterdir()} == {0o600}
    assert machine.copies.stat().st_mode & 0o777 == 0o700


def test_a_renewed_certificate_is_copied_and_an_unchanged_one_is_left(machine: Machine) -> None:
    machine.copy()
    before = (machine.copies / "ca.crt").stat().st_ino
    renewed = {**FIRST, "tls.key": "key 2\n", "tls.crt": "certificate 2\n"}
    machine.keep(renewed)
    done = machine.copy()
    assert (done.returncode, done.stdout) == (0, "")
    assert machine.files() == renewed
    assert (machine.copies / "ca.crt").stat().st_ino == before


def test_a_new_ca_is_reported_because_the_scheduler_reads_it_only_when_it_starts(machine: Machine) -> None:
    machine.copy()
    machine.keep({**FIRST, "ca.crt": "CA 1\nCA 2\n"})
    assert machine.copy().stdout == f"{machine.copies}/ca.crt has changed: restart kube-scheduler\n"
    assert machine.copy().stdout == ""


@pytest.mark.parametrize("fault", ["exit 1", "echo", "echo Y2E= a2V5", "echo '? ? ?'"])
def test_no_file_changes_if_the_secret_cannot_be_read(machine: Machine, fault: str) -> None:
    machine.copy()
    machine.shell.program("kubectl", fault)
    assert machine.copy().returncode != 0
    assert {name: text for name, text in machine.files().items() if not name.endswith(".new")} == FIRST


@pytest.mark.parametrize("printed", ["", "Y2E=", "Y2E= a2V5"])
def test_a_secret_that_is_not_filled_yet_is_named(machine: Machine, printed: str) -> None:
    machine.shell.program("kubectl", f"echo '{printed}'")
    done = machine.copy()
    assert (done.returncode, done.stdout) == (1, "")
    assert "halfcard-scheduler-tls is not filled yet: is halfcard-certs running? halfcard doctor" in done.stderr
