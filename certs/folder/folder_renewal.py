"""Renews the certificates of a folder while a server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from certs.folder.certificate_folder import CertificateFolderError, ensure
from certs.server_names import ServerNames
from serving.log import Log, utc_now

EVERY_S: Final = 60.0
"""Short, since a sleep does not advance while a machine is suspended; the wall clock decides."""


@dataclass(slots=True, eq=False)
class FolderRenewal:
    """`run` checks the folder until it is cancelled."""

    folder: Path
    names: ServerNames
    log: Log
    clock: Callable[[], datetime] = utc_now
    every_s: float = EVERY_S
    _failure: str = field(default="", init=False)

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self.check)  # a slow disk must not stop the server's loop
            await asyncio.sleep(self.every_s)

    def check(self) -> None:
        """Renews what is due; a failure is logged once, however long it lasts, and tried again."""
        try:
            outcome = ensure(self.folder, names=self.names, now=self.clock())
        except CertificateFolderError as error:
            self._log_failure(str(error))
            return
        self._failure = ""
        if outcome.changed:
            self.log.event("certificates renewed", folder=self.folder, reason=outcome.reason)

    def _log_failure(self, failure: str) -> None:
        if failure != self._failure:
            self.log.error("certificates not renewed", folder=self.folder, reason=failure)
        self._failure = failure
