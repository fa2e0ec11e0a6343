"""Watches the socket at which plugins register: kubelet creates it again at each start, and has then forgotten all
plugins.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

Identity = tuple[int, int] | None
"""Of a file that may be made anew under its name; None where there is none."""

LOOK_EVERY_S: Final = 0.05
_NAME: Final = "kubelet.sock"


class KubeletSocket:
    """Checked by a plugin that has lost kubelet; a connected plugin notices the end of the connection."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / _NAME

    def identity(self) -> Identity:
        """The number of an inode may be used again at once, so its time counts as well."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_ctime_ns

    def is_new(self, within_s: float) -> bool:
        """Whether kubelet began so lately."""
        try:
            return time.time() - self.path.stat().st_mtime < within_s
        except OSError:
            return True

    async def is_recreated(self, since: Identity, within_s: float) -> bool:
        """Returns as soon as it is."""
        now = asyncio.get_running_loop().time
        until = now() + within_s
        while self.identity() in (since, None):
            if now() >= until:
                return False
            await asyncio.sleep(min(LOOK_EVERY_S, within_s))
        return True
