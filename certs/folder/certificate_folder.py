"""Keeps certificates in a folder valid: read, decide by `plan`, write, until nothing is left to do.

Law: each file is replaced whole, by a rename, and the order of the files leaves no state that `plan` cannot
repair. Processes that share a folder use a lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, assert_never

from certs.authority import KeyPair, make_authority, make_leaf
from certs.certificate_checks import pem
from certs.lifetimes import ChainRules, LeafRules, folder_rules
from certs.plan import plan
from certs.server_names import ServerNames
from certs.steps import ChainContents, Keep, Note, Plan, Publish, Refuse, RenewAuthority, RenewLeaf, StoredLeaf, Trust
from serving.shared_folder import BusyFolderError, locked, replace_file

_WRITABLE_BY_OTHERS: Final = 0o022
_MOST_STEPS: Final = 4  # the longest way: a new CA, a new leaf, the old CA retired, nothing left


class CertificateFolderError(Exception):
    """The folder cannot be used; the text says what, where, rule, fix."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    folder: Path

    @property
    def ca(self) -> Path:
        """The CAs that clients trust: the current one first, then older ones that a leaf in use still needs."""
        return self.folder / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def certificate(self) -> Path:
        return self.folder / "tls.crt"

    @property
    def key(self) -> Path:
        return self.folder / "tls.key"


@dataclass(frozen=True, slots=True)
class FolderOutcome:
    files: CertificateFiles
    steps: tuple[Plan, ...]
    """The steps that were carried out, in order; the last one says why no other follows."""

    @property
    def changed(self) -> bool:
        return len(self.steps) > 1

    @property
    def reason(self) -> str:
        return "; ".join(step.reason for step in self.steps)


def ensure(folder: Path, *, names: ServerNames, now: datetime) -> FolderOutcome:
    """Makes sure that the folder has valid certificates for these names at this time.

    Raises:
        CertificateFolderError: the folder is unsafe, busy, owned by another program, or cannot be written.
    """
    files = CertificateFiles(folder)
    try:
        _require_private(folder)
        # Most checks find nothing to do, and need neither the lock nor the right to write.
        rules = folder_rules(names)
        decision = plan(_read(files), rules, now)
        if isinstance(decision, Keep):
            return FolderOutcome(files, (decision,))
        with locked(folder):
            return FolderOutcome(files, tuple(_carry_out(files, rules, now=now)))
    except BusyFolderError as busy:
        raise CertificateFolderError(f"certificate folder {folder}: {busy}") from None
    except OSError as error:
        raise CertificateFolderError(
            f"certificate folder {folder}: {error.strerror or error}; Halfcard stores its CA there: "
            f"use a folder that this user may write"
        ) from error


def _carry_out(files: CertificateFiles, rules: ChainRules, *, now: datetime) -> Iterator[Plan]:
    for _ in range(_MOST_STEPS):
        step = plan(_read(files), rules, now)
        _apply(step, files, rules, now=now)
        yield step
        if isinstance(step, Keep):
            return
    raise AssertionError(f"certificates in {files.folder} are never valid; this is a bug, please report it")


def _apply(step: Plan, files: CertificateFiles, rules: ChainRules, *, now: datetime) -> None:
    match step:
        case Keep() | Publish() | Note():  # the bundle of a folder has no copies
            return
        case RenewAuthority():
            authority = make_authority(rules, now=now)
            replace_file(files.ca_key, authority.key, mode=0o600)
            replace_file(files.ca, authority.certificate + pem(step.still_trusted), mode=0o644)
        case Trust():
            replace_file(files.ca, pem(step.authorities), mode=0o644)
        case RenewLeaf():
            _write_leaf(files, rules.leaves[step.leaf], now=now)
        case Refuse():
            raise CertificateFolderError(
                f"certificate folder {files.folder}: {step.reason}; Halfcard overwrites only its own files: "
                f"name another folder for its certificates"
            )
        case _:
            assert_never(step)


def _write_leaf(files: CertificateFiles, rules: LeafRules, *, now: datetime) -> None:
    authority = KeyPair(certificate=files.ca.read_bytes(), key=files.ca_key.read_bytes())
    leaf = make_leaf(authority, rules, now=now)
    replace_file(files.key, leaf.key, mode=0o600)
    replace_file(files.certificate, leaf.certificate, mode=0o644)


def _read(files: CertificateFiles) -> ChainContents:
    return ChainContents(
        ca_crt=_contents(files.ca),
        ca_key=_contents(files.ca_key),
        leaves=(StoredLeaf(_contents(files.certificate), _contents(files.key)),),
    )


def _contents(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _require_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = folder.stat().st_mode
    if mode & _WRITABLE_BY_OTHERS:
        raise CertificateFolderError(
            f"certificate folder {folder}: got mode {mode & 0o7777:04o}; every user that may write there "
            f"may replace the CA: chmod 700 {folder}"
        )
