"""The burst ceiling annotation: what it applies to, and its default.

The default equals the share. What we wrote ourselves is marked, so that a later pass can correct it when another
webhook has changed the pod in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from halfcard import names
from halfcard.asks import Asked
from halfcard.claims import WHOLE_CARD
from halfcard.pods import Pod

_WHOLE_NUMBER = re.compile(r"\s*\+?([0-9]{1,9})\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class CoreLimit:
    """The annotation of one system, beside the claims it applies to."""

    key: str
    text: str
    has_share: bool
    shares: tuple[int, ...]
    whole_cores: tuple[int, ...]

    @property
    def where(self) -> str:
        return f'metadata.annotations["{self.key}"]'


def whole_number_in(text: str) -> int | None:
    """People write " 50 " and +50."""
    match = _WHOLE_NUMBER.fullmatch(text)
    return int(match[1]) if match else None


def limits_of(pod: Pod, asked: tuple[Asked, ...]) -> Iterator[CoreLimit]:
    """Every core limit in the pod that some claim listens to."""
    present = pod.annotations
    keys = {wish.dialect.core_limit for _, wish in asked if wish.dialect}
    for key in sorted([key for key in keys if key and key in present]):
        mine = [each.claim for each in asked if each.claim and _listens(each, key)]
        shares = [claim for claim in mine if claim.is_share]
        yield CoreLimit(
            key,
            present[key],
            bool(shares),
            tuple(claim.cores_pct for claim in shares if claim.cores_pct),
            tuple(claim.cards * WHOLE_CARD for claim in mine if claim.exclusive),
        )


def _listens(asked: Asked, key: str) -> bool:
    return asked.wish.dialect is not None and asked.wish.dialect.core_limit == key


def default_limit(asked: tuple[Asked, ...]) -> tuple[str, int] | None:
    """The annotation and its value where every GPU container, init included, asks for the same share."""
    wanted = {
        (wish.dialect.core_limit, wish.claim.cores_pct if wish.claim.is_share else None)
        for _, wish in asked
        if wish.claim and wish.dialect
    }
    if len(wanted) != 1:
        return None
    ((key, share),) = wanted
    return (key, share) if key and share else None


def mark(key: str, share: int) -> str:
    """The text that says: this limit was ours."""
    return f"{key}={share}"


def is_ours(pod: Pod, marked: str | None) -> bool:
    """A mark counts only for a core limit, and as long as nobody has changed the limit it speaks of."""
    if not marked:
        return False
    key, _, value = marked.partition("=")
    return key.endswith(names.CORE_LIMIT_SUFFIX) and pod.annotations.get(key) == value


def without_our_default(pod: Pod) -> Pod:
    """What people wrote: our own limit is decided anew, so it is no mistake of theirs when it fits no longer."""
    marked = pod.annotations.get(names.CORE_LIMIT_DEFAULTED)
    if pod.metadata is None or marked is None or not is_ours(pod, marked):
        return pod
    ours = (marked.partition("=")[0], names.CORE_LIMIT_DEFAULTED)
    kept = {key: text for key, text in pod.annotations.items() if key not in ours}
    return replace(pod, metadata=replace(pod.metadata, annotations=kept))
