"""Requests for GPUs that no dialect reads: those that other systems give out, and misspelled ones; and what to do."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NamedTuple

from .. import names
from ..dialects import ALL


class ForeignRequest(NamedTuple):
    """A row of the tables.

    Attributes:
        name: of the resource or annotation; of a resource it is the beginning.
        fix: whose it is, and what else to do; short enough for a warning.
    """

    name: str
    fix: str


RESOURCES: Final = (
    ForeignRequest(names.NVIDIA_MIG, f"{names.NVIDIA_MIG}* is for NVIDIA's plugin; limit it by a ResourceQuota"),
    ForeignRequest(names.VOLCANO_VGPU, f"{names.VOLCANO_VGPU}* is for Volcano; use {names.VOLCANO_GPU_MEMORY}, in MiB"),
    ForeignRequest(names.KOORDINATOR_GPU, f"{names.KOORDINATOR_GPU}* is for Koordinator; use docs/dialects.md"),
)
_KNOWN: Final = frozenset().union(*[dialect.resources for dialect in ALL])
_DOMAINS: Final = frozenset(f"{resource.partition('/')[0]}/" for resource in _KNOWN)
BEGINNINGS: Final = tuple(
    sorted(_DOMAINS | {row.name for row in RESOURCES if not row.name.startswith(tuple(_DOMAINS))})
)
"""What every resource begins with that a warning may be about."""

_ALIKE: Final = 0.8
_LONGEST: Final = 100
ANNOTATIONS: Final = tuple(
    ForeignRequest(name, f"{name} is for KAI Scheduler; request resources: docs/dialects.md")
    for name in (names.KAI_FRACTION, names.KAI_MEMORY)
)


def fix_of_resource(resource: str) -> str:
    """Returns what to do about a resource; empty if it is none of these, as nearly all are."""
    if not resource.startswith(BEGINNINGS) or resource in _KNOWN:
        return ""
    return next((row.fix for row in RESOURCES if resource.startswith(row.name)), "") or _respelled(resource)


@lru_cache(maxsize=256)
def _respelled(resource: str) -> str:
    """Returns which resource may be meant by one that is spelled much like it; empty for others."""
    domain, _, name = resource.partition("/")
    known = [each.partition("/")[2] for each in _KNOWN if each.startswith(f"{domain}/")]
    found = get_close_matches(name[:_LONGEST].lower(), known, 1, _ALIKE)
    return f"did you mean {domain}/{found[0]}?" if found else ""
