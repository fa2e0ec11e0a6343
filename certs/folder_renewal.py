"""Keeps a folder of certificates good for as long as a server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from certs.certificate_folder import CertificateFolderError, ensure
from certs.server_names import ServerNames

EVERY_S: Final = 60.0
"""A sleeper's clock stands still while a machine is suspended: short naps, and the wall clock decides."""


class RenewalLog(Protocol):
    def event(self, text: str, /, **fields: object) -> None: ...

    def error(self, text: str, /, **fields: object) -> None: ...


def wall_clock() -> datetime:
    return datetime.now(UTC)


class FolderRenewal:
    """`run` looks at the folder until it is cancelled; `last_succeeded` is for a metric."""

    def __init__(
        self,
        folder: Path,
        names: ServerNames,
        *,
        log: RenewalLog,
        clock: Callable[[], datetime] = wall_clock,
        every_s: float = EVERY_S,
    ) -> None:
        self._folder = folder
        self._names = names
        self._log = log
        self._clock = clock
        self._every_s = every_s
        self._complaint = ""
        self.last_succeeded: datetime | None = None

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self.look)  # a slow disk must not stop the server's loop
            await asyncio.sleep(self._every_s)

    def look(self) -> None:
        """One look; a failure is said once, however long it lasts, and tried again."""
        now = self._clock()
        try:
            outcome = ensure(self._folder, names=self._names, now=now)
        except CertificateFolderError as error:
            self._complain(str(error))
            return
        self.last_succeeded, self._complaint = now, ""
        if outcome.changed:
            self._log.event("certificates renewed", folder=self._folder, reason=outcome.reason)

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._log.error("certificates not renewed", folder=self._folder, reason=complaint)
        self._complaint = complaint
