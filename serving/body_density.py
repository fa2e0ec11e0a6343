"""Bounds what parsing a body costs, from its bytes alone: memory and time by the number of its values.

A value costs Python up to 118 bytes, an empty list 37 for three bytes of JSON. An object of a cluster has a value in 16
bytes, and few have more than thousands.
"""

from __future__ import annotations

from typing import Final

from serving.request_body import RefusedRequest

FREE_VALUES: Final = 150_000
"""A body of any density may have so many: they cost less than 20 MB."""

BYTES_PER_VALUE: Final = 16
"""A body with more values needs so many bytes for each, so that it takes about eight times its size."""


def check_density(body: bytes) -> None:
    """Raises RefusedRequest for too many values; a comma in a text counts like one between values."""
    most = max(FREE_VALUES, len(body) // BYTES_PER_VALUE)
    if len(body) > most and (values := sum(map(body.count, (b",", b"[", b"{")))) > most:
        raise RefusedRequest(413, f"the body has about {values} values; one of {len(body)} bytes may have {most}")
