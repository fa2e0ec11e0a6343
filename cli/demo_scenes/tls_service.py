"""A service of the demonstration that is called over TLS."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit


class TlsService:
    """One kept connection; the path of `url`, such as a caller token, comes before every path."""

    def __init__(self, url: str, ca_file: str) -> None:
        address = urlsplit(url)
        self._prefix = address.path
        trust = ssl.create_default_context(cafile=ca_file)
        self._connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=trust, timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        sent = json.dumps(body).encode()
        self._connection.request("POST", f"{self._prefix}{path}", sent, {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return answer
