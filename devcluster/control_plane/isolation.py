"""Whether a cluster may have a network namespace of its own here, so that webhooks are registered as shipped."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Final

_TRY: Final = ("unshare", "--net", "ip", "link", "add", "name", "one", "type", "veth", "peer", "name", "two")


def possible() -> bool:
    """By doing it, for a moment: root alone is not enough in a container."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip"))):
        return False
    return subprocess.run(_TRY, capture_output=True, check=False).returncode == 0
