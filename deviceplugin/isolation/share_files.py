"""The account and the control file of each container with a share, on the node."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from halfcard.isolation.shared_files import (
    ACCOUNT_SIZE,
    AccountCard,
    CardControl,
    account_size,
    new_account,
    read_account,
    read_control,
    write_control,
)

ACCOUNT: Final = "account"
CONTROL: Final = "control"
_DRAFT: Final = ".new"
_READABLE, _WRITABLE = 0o644, 0o666  # containers run as any user


class ShareFiles:
    """The files by slot, below one folder, which no pod may mount."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, slot: str) -> Path:
        return self._folder / slot

    def slots(self) -> list[str]:
        return [folder.name for folder in self._folder.glob("*")]

    def write(self, slot: str, cards: Sequence[CardControl]) -> None:
        """Writes both files; programs that still use earlier ones keep them.

        The account has memory for the rows of these cards alone, and from the beginning: the file system may be full
        later.
        """
        folder = self.folder(slot)
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        _replace(folder / ACCOUNT, new_account(len(cards)), _WRITABLE, size=ACCOUNT_SIZE)
        control = write_control(cards)
        _replace(folder / CONTROL, control.rstrip(b"\0"), _READABLE, size=len(control))

    def account(self, slot: str, cards: int) -> tuple[AccountCard, ...]:
        """Reads the first cards of an account, of which any byte may be the container's.

        Raises:
            BrokenAccountError, OSError: it cannot be read.
        """
        path = self.folder(slot) / ACCOUNT
        with path.open("rb", buffering=0) as account:
            data = os.pread(account.fileno(), account_size(cards), 0)
            return read_account(data, str(path), cards, os.fstat(account.fileno()).st_size)

    def controls(self, slot: str) -> tuple[CardControl, ...]:
        """Returns the controls of a container's cards, in the order of its account."""
        return read_control((self.folder(slot) / CONTROL).read_bytes())

    def change(self, slot: str, *changes: tuple[int, bytes]) -> None:
        """Changes a control file, each change at its place: the container has mapped the file."""
        with (self.folder(slot) / CONTROL).open("r+b", buffering=0) as control:
            for offset, written in changes:
                os.pwrite(control.fileno(), written, offset)

    def remove(self, slot: str) -> None:
        shutil.rmtree(self.folder(slot), ignore_errors=True)

    def cut(self) -> None:
        """Cuts accounts that their containers made longer, so that none of them fills the file system."""
        for account in self._folder.glob(f"*/{ACCOUNT}"):
            with suppress(FileNotFoundError):
                if account.stat().st_size > ACCOUNT_SIZE:
                    os.truncate(account, ACCOUNT_SIZE)


def _replace(path: Path, content: bytes, mode: int, *, size: int) -> None:
    draft = path.with_name(path.name + _DRAFT)
    draft.write_bytes(content)
    os.truncate(draft, size)
    draft.chmod(mode)
    draft.rename(path)
