"""Builds Events of the API server, which `kubectl describe` shows with an object."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

MOST_CHARS: Final = 1000
"""The most characters of a message; the API server accepts 1,024 bytes."""

NOWHERE: Final = "default"
"""The namespace for Events about objects that have no namespace, by convention."""


def moment(now: datetime) -> str:
    """Formats a time like the API server."""
    return f"{now:%Y-%m-%dT%H:%M:%SZ}"


def event(
    about: Mapping[str, str],
    metadata: Mapping[str, str],
    source: Mapping[str, str],
    content: Mapping[str, Any],
    *,
    is_warning: bool = True,
) -> bytes:
    """Builds an Event.

    Args:
        about: refers to the object.
        metadata: names the Event.
        source: who writes it.
        content: reason, message, times and count.
        is_warning: its type; otherwise it is normal.
    """
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {**metadata, "namespace": about.get("namespace", NOWHERE)},
            "involvedObject": about,
            "type": "Warning" if is_warning else "Normal",
            "source": source,
            **content,
        }
    )


def once(reason: str, message: str, now: datetime) -> dict[str, Any]:
    """Returns the fields of an Event that is written once."""
    when = moment(now)
    said = {"reason": reason, "message": message[:MOST_CHARS]}
    return {**said, "firstTimestamp": when, "lastTimestamp": when, "count": 1}
