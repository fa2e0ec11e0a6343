"""Asks a program over HTTP whether it is healthy."""

from __future__ import annotations

import ssl
import urllib.request
from typing import Final

_PATIENCE_S: Final = 2


def is_healthy(url: str, tls: ssl.SSLContext) -> bool:
    # No proxy: the addresses are on this machine whatever the environment says.
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=_PATIENCE_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
