"""Watches the socket at which plugins register: kubelet creates it again at each start, and has then forgotten all
plugins.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

Identity = tuple[int, int] | None
"""Tells a file from a later one of the same name; None where there is no file."""

LOOK_EVERY_S: Final = 0.05
_NAME: Final = "kubelet.sock"


class KubeletSocket:
    """Checked by a plugin that is not connected; a connected one notices the end of the connection."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / _NAME

    def identity(self) -> Identity:
        """Returns the identity of the socket; with its time, since an inode number may be reused at once."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_ctime_ns

    def is_new(self, within_s: float) -> bool:
        """Returns whether kubelet started within this time."""
        try:
            return time.time() - self.path.stat().st_mtime < within_s
        except OSError:
            return True

    async def is_recreated(self, since: Identity, within_s: float) -> bool:
        """Waits until kubelet has created the socket again; False where the time runs out."""
        now = asyncio.get_running_loop().time
        until = now() + within_s
        while self.identity() in (since, None):
            if now() >= until:
                return False
            await asyncio.sleep(min(LOOK_EVERY_S, within_s))
        return True
