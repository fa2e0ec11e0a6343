"""Forwards a bind to the leader."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from halfcard import names
from kube.api.access import Access
from kube.api.calls import ApiCalls, NoAnswerError

_PATH: Final = f"{names.BIND_PATH}?forwarded=1"
TIMEOUT_S: Final = 20.0


class NotForwarded(Exception):
    """The leader could not be asked; the text says why in a few words."""


@dataclass(slots=True)
class Forwarding:
    """Forwards binds; `leader` returns the address of the leading replica, `mine` is our own."""

    leader: Callable[[], str | None]
    mine: str
    tls: Callable[[], ssl.SSLContext]
    _calls: dict[str, ApiCalls] = field(default_factory=dict)

    async def bind(self, body: bytes) -> bytes:
        address = self.leader()
        if not address or address == self.mine:
            raise NotForwarded("an election is under way")
        try:
            answer = await self._calls_to(address).post(_PATH, body, timeout_s=TIMEOUT_S)
        except NoAnswerError as error:
            raise NotForwarded(f"{address} does not answer: {error}") from None
        return answer.body

    def _calls_to(self, address: str) -> ApiCalls:
        """Returns the connections to the leader, and closes those to the previous leader."""
        if address not in self._calls:
            self.close()
            self._calls[address] = ApiCalls(_access(address, self.tls))
        return self._calls[address]

    def close(self) -> None:
        for calls in self._calls.values():
            calls.close()
        self._calls.clear()


def _access(address: str, tls: Callable[[], ssl.SSLContext]) -> Access:
    url = urlsplit(address)
    if not url.hostname or not url.port:
        raise NotForwarded(f'the Lease names no address of its holder: "{address[:80]}"')
    return Access(url.hostname, url.port, tls=tls if url.scheme == "https" else None)
