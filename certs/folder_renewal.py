"""Renews the certificates of a folder while a server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from certs.certificate_folder import CertificateFolderError, ensure
from certs.server_names import ServerNames
from serving.log import Log, utc_now

EVERY_S: Final = 60.0
"""Short, since a sleep does not advance while a machine is suspended; the wall clock decides."""


class FolderRenewal:
    """`run` checks the folder until it is cancelled."""

    def __init__(
        self,
        folder: Path,
        names: ServerNames,
        *,
        log: Log,
        clock: Callable[[], datetime] = utc_now,
        every_s: float = EVERY_S,
    ) -> None:
        self._folder = folder
        self._names = names
        self._log = log
        self._clock = clock
        self._every_s = every_s
        self._failure = ""

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self.check)  # a slow disk must not stop the server's loop
            await asyncio.sleep(self._every_s)

    def check(self) -> None:
        """Renews what is due; a failure is logged once, however long it lasts, and tried again."""
        try:
            outcome = ensure(self._folder, names=self._names, now=self._clock())
        except CertificateFolderError as error:
            self._log_failure(str(error))
            return
        self._failure = ""
        if outcome.changed:
            self._log.event("certificates renewed", folder=self._folder, reason=outcome.reason)

    def _log_failure(self, failure: str) -> None:
        if failure != self._failure:
            self._log.error("certificates not renewed", folder=self._folder, reason=failure)
        self._failure = failure
