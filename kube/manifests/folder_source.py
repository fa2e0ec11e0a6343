"""Reads the cluster's state from a folder of manifests instead of an API server.

Invariant: a mistake at the start ends the process; a later mistake keeps the last valid view and is reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Final

from halfcard.capacity import CapacityRules
from halfcard.cluster_view import ClusterView

from .documents import Document, ManifestError, files_below, read_file
from .gather import gather

POLL_SECONDS: Final = 1.0

_Signature = tuple[tuple[str, int, int, int], ...]
"""Every file with its time, size and inode: every edit changes one of them."""


class FolderSource:
    """A ClusterSource that reads a folder.

    Attributes:
        folder: where it reads.
        documents: every object of the last valid state, another sequence after each change.
        mistake: why the folder cannot be read now; None while it can.

    Raises:
        ManifestError: the folder does not exist, or contains an unreadable manifest.
    """

    def __init__(self, folder: Path, rules: CapacityRules | None = None, *, poll_seconds: float = POLL_SECONDS) -> None:
        self.folder = folder
        self.documents: Sequence[Document] = ()
        self.mistake: str | None = None
        self._rules = rules or CapacityRules()
        self._poll_seconds = poll_seconds
        self._turn = Lock()
        self._seen = self._signature()
        self._view = self._load()

    def view(self) -> ClusterView:
        return self._view

    def ready(self) -> bool:
        return True

    def problems(self) -> tuple[str, ...]:
        odd = tuple(str(node) for node in self._view.odd_nodes)
        return (self.mistake, *odd) if self.mistake else odd

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            await asyncio.to_thread(self.refresh)

    def refresh(self) -> None:
        """Reads changed files; the signature comes first, so that a change during the read is found next time."""
        with self._turn:  # a caller in another thread waits until a change that was found is read
            signature = self._signature()
            if signature == self._seen:
                return
            self._seen = signature  # also after a failure: the same mistake is not read every second
            try:
                self._view, self.mistake = self._load(), None
            except ManifestError as error:
                self.mistake = str(error)

    def _signature(self) -> _Signature | None:
        """Returns a signature of the files; None where the folder cannot be listed; loading then reports why."""
        try:
            return tuple(_sign(path) for path in files_below(self.folder))
        except ManifestError:
            return None

    def _load(self) -> ClusterView:
        documents = [*chain.from_iterable(read_file(path) for path in files_below(self.folder))]
        view = gather(documents, self._rules)
        self.documents = documents
        return view


def _sign(path: Path) -> tuple[str, int, int, int]:
    try:
        status = path.stat()
    except OSError:  # deleted or unreadable since the folder was listed; reading it reports that
        return (str(path), 0, 0, 0)
    return (str(path), status.st_mtime_ns, status.st_size, status.st_ino)
