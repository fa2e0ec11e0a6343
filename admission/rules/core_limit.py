"""The annotation of the core limit: which claims it applies to, and its default.

The default equals the share. A default that Halfcard wrote is marked, so that a later pass can correct it after another
webhook has changed the pod.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec.structs import replace

from halfcard import names
from halfcard.claims import WHOLE_CARD, Claim
from halfcard.pod.requests import RequestingContainer
from halfcard.pod.spec import Pod

_WHOLE_NUMBER = re.compile(r"\s*\+?([0-9]{1,9})\s*", re.ASCII)


class CoreLimit(NamedTuple):
    """The core limit annotation of one system, with the claims it applies to."""

    key: str
    text: str
    claims: tuple[Claim, ...]

    @property
    def where(self) -> str:
        return f'metadata.annotations["{self.key}"]'

    @property
    def has_share(self) -> bool:
        return any(claim.is_share for claim in self.claims)

    @property
    def least(self) -> int:
        """The largest share of the pod: a limit must not be below it."""
        return max((claim.cores_pct or 1 for claim in self.claims if claim.is_share), default=1)

    @property
    def whole_cores(self) -> list[int]:
        return [claim.cards * WHOLE_CARD for claim in self.claims if claim.exclusive]


def whole_number_in(text: str) -> int | None:
    """Returns the number; None where the text is no whole number. Users also write " 50 " and +50."""
    match = _WHOLE_NUMBER.fullmatch(text)
    return int(match[1]) if match else None


def limits_of(pod: Pod, asked: tuple[RequestingContainer, ...]) -> list[CoreLimit]:
    """Returns every core limit of the pod that applies to one of its claims, by the dialect of the claim."""
    present = pod.annotations
    applying: dict[str, list[Claim]] = {}
    for _, request in asked:
        key = request.dialect and request.dialect.core_limit
        if key and key in present:
            applying.setdefault(key, []).extend([request.claim] if request.claim else ())
    return [CoreLimit(key, present[key], tuple(mine)) for key, mine in sorted(applying.items())]


def default_limit(asked: tuple[RequestingContainer, ...]) -> tuple[str, int] | None:
    """Returns the annotation and its value where all GPU containers request the same share; else None."""
    wanted = {
        (request.dialect.core_limit, request.claim.cores_pct if request.claim.is_share else None)
        for _, request in asked
        if request.claim and request.dialect
    }
    if len(wanted) != 1:
        return None
    ((key, share),) = wanted
    return (key, share) if key and share else None


def mark(key: str, share: int) -> str:
    """Returns the text of the annotation that marks a core limit as Halfcard's default."""
    return f"{key}={share}"


def is_ours(pod: Pod, marked: str | None) -> bool:
    """Returns whether we wrote the core limit: the mark counts only while the limit is unchanged."""
    if not marked:
        return False
    key, _, value = marked.partition("=")
    return key.endswith(names.CORE_LIMIT_SUFFIX) and pod.annotations.get(key) == value


def without_our_default(pod: Pod) -> Pod:
    """Returns the pod without our default, which is computed again: an outdated one is not the user's mistake."""
    marked = pod.annotations.get(names.CORE_LIMIT_DEFAULTED)
    if pod.metadata is None or marked is None or not is_ours(pod, marked):
        return pod
    ours = (marked.partition("=")[0], names.CORE_LIMIT_DEFAULTED)
    kept = {key: text for key, text in pod.annotations.items() if key not in ours}
    return replace(pod, metadata=replace(pod.metadata, annotations=kept))
