"""What holds the containers of a pod to their shares, as the agent of its node records it in an annotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

LIBRARY: Final = "library"
DRIVER: Final = "driver"
_MOST_CHARS: Final = 16_384


class Holding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The holders of one container: the isolation libraries, the driver or both; `why` is for none."""

    by: tuple[str, ...] = ()
    why: str = ""


_HOLDINGS: Final = msgspec.json.Decoder(dict[str, Holding])


def write_holdings(found: Mapping[str, Holding]) -> str:
    """Returns the annotation; `found` is by the name of the container."""
    return msgspec.json.encode(dict(sorted(found.items()))).decode()


def read_holdings(text: str) -> Mapping[str, Holding]:
    """Reads the annotation; one that cannot be read says nothing."""
    if len(text) > _MOST_CHARS:
        return {}
    try:
        return _HOLDINGS.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return {}


def with_driver(found: Holding) -> Holding:
    """Returns what holds a container of which the driver limits the memory, too."""
    return Holding((*found.by, DRIVER))


_SENTENCES: Final = {
    (LIBRARY,): "held to its share by the isolation libraries",
    (DRIVER,): "held to its memory by the driver",
    (LIBRARY, DRIVER): "held to its share by the isolation libraries, and to its memory by the driver too",
}


def in_words(found: Holding | None) -> str:
    """Returns a sentence about a container of a share; None for one of which nothing is recorded."""
    if found is None:
        return "not held to its share, as far as its node's agent has recorded"
    return _SENTENCES.get(found.by) or f"not held to its share: {found.why}"
