"""Limits on the time and size of a client's requests, and the pure verdict on an overdue connection.

Law: a deadline counts from the first byte of the header or body, never from the last byte received, so a
client that sends one byte a second is closed like a silent one. A finished handshake without a request is
an idle connection, not a slow one: API servers open connections in advance.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientLimits:
    handshake_s: float = 10.0
    header_s: float = 10.0
    body_s: float = 10.0
    write_s: float = 10.0
    # Longer than the 90 s for which an API server keeps an idle connection, so that the client closes first:
    # a POST that meets a connection just closed by the server is not retried.
    keep_alive_s: float = 120.0
    max_connections: int = 1000
    max_header_bytes: int = 64 * 1024
    # The last answer says "Connection: close", so that traffic moves to replicas that were started later.
    requests_per_connection: int = 1000

    @property
    def sweep_every_s(self) -> float:
        shortest = min(self.header_s, self.body_s, self.write_s, self.keep_alive_s)
        return max(0.01, min(1.0, shortest / 4))


class RequestPart(enum.Enum):
    """The part of a request that the client has not sent yet."""

    NOTHING = "nothing"
    HEADER = "header"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Overdue:
    reason: str
    status: int | None = None


_IDLE = Overdue("idle longer than the keep-alive time")
_HEADER = Overdue("request header not complete in time", 408)
_BODY = Overdue("request body not complete in time", 408)
HEADER_TOO_LARGE = Overdue("request header too large", 431)


def overdue(reading: RequestPart, waited_s: float, *, answering: bool, limits: ClientLimits) -> Overdue | None:
    """Returns why a connection is overdue, or None; `answering`: the application works on a request of it."""
    if reading is RequestPart.BODY:
        return _BODY if waited_s > limits.body_s else None
    if answering:
        return None
    if reading is RequestPart.HEADER:
        return _HEADER if waited_s > limits.header_s else None
    return _IDLE if waited_s > limits.keep_alive_s else None
