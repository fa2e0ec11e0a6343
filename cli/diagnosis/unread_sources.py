"""Reports what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .finding import NOTE, Check, FoundFault
from .snapshot import Snapshot


def _unread(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in snapshot.unread:
        yield FoundFault(each.what, each.why, "run the doctor as a user who may read it, from a place that reaches it")


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "not-looked-at",
        NOTE,
        "everything can be read",
        "What cannot be read is not checked.",
        _unread,
    ),
)
