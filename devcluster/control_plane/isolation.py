"""Checks whether this machine allows a cluster its own network namespace, which webhooks by Service reference need."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Final

_TRY: Final = ("unshare", "--net", "ip", "link", "add", "name", "one", "type", "veth", "peer", "name", "two")


def is_possible() -> bool:
    """Tries it for a moment, because in a container root alone is not enough."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip"))):
        return False
    return subprocess.run(_TRY, capture_output=True, check=False).returncode == 0
