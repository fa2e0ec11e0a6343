"""The two files of a held container on the node: new for each start, and never longer than they were made."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deviceplugin.isolation.share_files import ShareFiles
from halfcard.isolation.shared_files import ACCOUNT_SIZE, CONTROL_SIZE, CardControl, new_account, write_control

CARDS: Final = [CardControl(b"A" * 16, 1 << 30)]


def test_a_container_gets_an_empty_account_and_its_limits(tmp_path: Path) -> None:
    files = ShareFiles(tmp_path / "shares")
    files.write("slot", CARDS)
    account, control = (files.folder("slot") / name for name in ("account", "control"))
    assert account.read_bytes() == new_account() and account.stat().st_mode & 0o777 == 0o666
    assert control.read_bytes() == write_control(CARDS) and control.stat().st_mode & 0o777 == 0o644
    assert files.slots() == ["slot"]


def test_memory_is_taken_for_the_cards_of_the_container_alone(tmp_path: Path) -> None:
    files = ShareFiles(tmp_path / "shares")
    files.write("slot", CARDS)
    account, control = ((files.folder("slot") / name).stat().st_blocks * 512 for name in ("account", "control"))
    assert len(new_account(1)) <= account < ACCOUNT_SIZE / 4
    assert 0 < control < CONTROL_SIZE / 4


def test_programs_of_an_earlier_start_keep_their_files(tmp_path: Path) -> None:
    files = ShareFiles(tmp_path / "shares")
    files.write("slot", CARDS)
    with (files.folder("slot") / "account").open("r+b") as earlier:
        files.write("slot", [])
        earlier.write(b"still written")
    assert (files.folder("slot") / "account").read_bytes() == new_account()


def test_an_account_that_grew_is_cut_and_keeps_its_content(tmp_path: Path) -> None:
    files = ShareFiles(tmp_path / "shares")
    files.write("slot", CARDS)
    account = files.folder("slot") / "account"
    with account.open("r+b") as opened:
        opened.seek(ACCOUNT_SIZE * 3)
        opened.write(b"more")
    files.cut()
    assert account.read_bytes() == new_account()


def test_an_account_that_its_container_cut_stays_as_it_is(tmp_path: Path) -> None:
    files = ShareFiles(tmp_path / "shares")
    files.write("slot", CARDS)
    (files.folder("slot") / "account").write_bytes(b"")
    files.cut()
    assert (files.folder("slot") / "account").read_bytes() == b""
    assert (files.folder("slot") / "control").stat().st_size == CONTROL_SIZE


def test_removed_files_are_gone(tmp_path: Path) -> None:
    files = ShareFiles(tmp_path / "shares")
    files.write("slot", CARDS)
    files.remove("slot")
    files.remove("never written")
    files.cut()
    assert files.slots() == []
