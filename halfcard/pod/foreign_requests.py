"""Requests for GPUs that other systems give out and no dialect reads: what they are, and what to do."""

from __future__ import annotations

from typing import Final, NamedTuple

from .. import names


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
_BEGINNINGS: Final = tuple(row.name for row in RESOURCES)
ANNOTATIONS: Final = tuple(
    ForeignRequest(name, f"{name} is for KAI Scheduler; request resources: docs/dialects.md")
    for name in (names.KAI_FRACTION, names.KAI_MEMORY)
)


def fix_of_resource(resource: str) -> str:
    """Returns what to do about a resource; empty if it is none of these, as nearly all are."""
    if not resource.startswith(_BEGINNINGS):
        return ""
    return next((row.fix for row in RESOURCES if resource.startswith(row.name)), "")
