"""Bounds the size of a review by its operation, and its density, before it is parsed."""

from __future__ import annotations

from typing import Final

from serving.large_bodies import check_density
from serving.request_body import RefusedRequest

MAX_BODY_BYTES: Final = 7 * 2**20
"""The API server takes objects up to 3 MiB, and an update carries two."""

MAX_OBJECT_BYTES: Final = 4 * 2**20
"""A review with one object."""

_HEAD_BYTES: Final = 64 * 2**10
_UPDATE: Final = b'"operation":"UPDATE"'
"""The API server writes the operation before the objects, without spaces."""


def check_cost(body: bytes) -> None:
    """Raises RefusedRequest for a body that would cost too much."""
    if len(body) > MAX_OBJECT_BYTES and _UPDATE not in body[:_HEAD_BYTES]:
        raise RefusedRequest(413, f"a review with one object is larger than {MAX_OBJECT_BYTES} bytes")
    check_density(body)
