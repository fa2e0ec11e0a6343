"""A server's TLS context whose certificate, key and client CA are reloaded from files without closing connections.

Law: a live context is never changed. A reload builds a new one from bytes that were read once and checked
as a pair, and only then do new handshakes use it; after any error they use the old one.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self

from serving.certificate_pair import ServedLeaf, read_pair
from serving.errors import CannotServeError
from serving.log import Log, utc_now
from serving.tls_context import server_context

POLL_S = 3.0
UNCHANGED = "the files are unchanged"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    cert: Path
    key: Path
    client_ca: Path | None = None

    def __str__(self) -> str:
        return ", ".join(str(path) for path in (self.cert, self.key, self.client_ca) if path is not None)


class Reload(NamedTuple):
    changed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _FileContents:
    """The bytes of the files: kubelet replaces a Secret's files by symlink, so times and inodes do not show changes."""

    cert: bytes
    key: bytes
    client_ca: bytes | None

    @classmethod
    def read(cls, files: TlsFiles) -> Self:
        client_ca = files.client_ca.read_bytes() if files.client_ca is not None else None
        return cls(files.cert.read_bytes(), files.key.read_bytes(), client_ca)

    def digest(self) -> bytes:
        parts = (self.cert, self.key, self.client_ca or b"")
        return b"".join(hashlib.sha256(part).digest() for part in parts)


class ReloadingContext:
    """A listener uses `context`; each handshake, with or without SNI, uses the current files."""

    def __init__(
        self,
        files: TlsFiles,
        *,
        poll_s: float = POLL_S,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._files = files
        self._poll_s = poll_s
        self._clock = clock
        try:
            material = _FileContents.read(files)
            self.leaf: ServedLeaf = read_pair(material.cert, material.key, at=clock())
            self._current = _fresh_context(material)
            self.context = _fresh_context(material)
        except Exception as error:
            raise CannotServeError(
                f"TLS files {files}: {error}; mount a PEM certificate chain and its key, as in a Secret "
                f"of type kubernetes.io/tls"
            ) from error
        self._digest = material.digest()
        self.context.sni_callback = self._swap_in_current

    def _swap_in_current(
        self, handshake: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _base: ssl.SSLContext
    ) -> None:
        handshake.context = self._current

    def reload(self) -> Reload:
        """Reads the files; returns whether new handshakes use another certificate, and the reason."""
        try:
            material = _FileContents.read(self._files)
            digest = material.digest()
            if digest == self._digest:
                return Reload(changed=False, reason=UNCHANGED)
            leaf = read_pair(material.cert, material.key, at=self._clock())
            self._current = _fresh_context(material)
        except Exception as error:  # noqa: BLE001 - after any error with the files the live context stays
            reason = f"TLS files {self._files}: {error}; the previous certificate stays in use"
            return Reload(changed=False, reason=reason)
        self.leaf, self._digest = leaf, digest
        names = ", ".join(leaf.names)
        return Reload(changed=True, reason=f"certificate for {names}, valid until {leaf.not_after:%FT%TZ}")

    async def watch(self, log: Log) -> None:
        """Reloads the files until cancelled; logs a problem once, however long it lasts."""
        said = ""
        while True:
            await asyncio.sleep(self._poll_s)
            outcome = self.reload()
            if outcome.changed:
                log.event("TLS certificate swapped", reason=outcome.reason)
            elif outcome.reason not in (UNCHANGED, said):
                log.warning("TLS certificate not swapped", reason=outcome.reason)
            said = outcome.reason


def _fresh_context(material: _FileContents) -> ssl.SSLContext:
    context = server_context(material.cert + b"\n" + material.key)
    if material.client_ca is not None:
        context.load_verify_locations(cadata=material.client_ca.decode("ascii"))
        context.verify_mode = ssl.CERT_REQUIRED
    return context
