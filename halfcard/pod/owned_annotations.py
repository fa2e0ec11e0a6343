"""Names the annotations that record decisions of Halfcard or of a peer's scheduler, which only these may write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .. import names

_OWNED: Final = re.compile(
    f"(?:{'|'.join(map(re.escape, names.OWNED_PREFIXES))})|[^/]+(?:{'|'.join(map(re.escape, names.OWNED_SUFFIXES))})"
)

_BEFORE_BINDING: Final = frozenset({names.FENCE, names.RECONSIDER, names.CORE_LIMIT_DEFAULTED})
"""Halfcard writes these on pods that have no node yet."""


def is_owned(key: str) -> bool:
    """Returns whether only Halfcard and its peers may write this annotation."""
    return _OWNED.match(key) is not None


def forged(annotations: Iterable[str]) -> list[str]:
    """Returns owned annotations that a pod without a node cannot have yet; they would survive its Binding."""
    return sorted(key for key in annotations if key not in _BEFORE_BINDING and is_owned(key))
