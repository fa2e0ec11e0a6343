"""Defines stored pods: the fields that admission reads, and identity, node and phase."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from .. import names
from .spec import Pod, PodMetadata, PodSpec

_TERMINAL: Final = frozenset({"Succeeded", "Failed"})


class StoredMetadata(PodMetadata, frozen=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None

    @property
    def gone_by_s(self) -> float | None:
        """Returns when a deleted pod should be gone, as native quota computes it; None where it is not deleted.

        The grace period is in the time of the deletion already, and native quota adds it once more.
        """
        if self.deletion_timestamp is None or self.deletion_grace_period_seconds is None:
            return None
        return datetime.fromisoformat(self.deletion_timestamp).timestamp() + self.deletion_grace_period_seconds


class StoredSpec(PodSpec, frozen=True, rename="camel"):
    priority: int | None = None
    preemption_policy: str | None = None


class Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    phase: str = ""


_NO_METADATA: Final = StoredMetadata()


class StoredPod(Pod, frozen=True, rename="camel"):
    metadata: StoredMetadata | None = None
    spec: StoredSpec | None = None
    status: Status | None = None

    @property
    def meta(self) -> StoredMetadata:
        return self.metadata or _NO_METADATA

    @property
    def node(self) -> str:
        return (self.spec and self.spec.node_name) or ""

    @property
    def kubelet_uid(self) -> str:
        """Returns the uid that kubelet uses: for a static pod the API server stores a copy with another uid."""
        return self.annotations.get(names.MIRROR_POD) or self.meta.uid

    @property
    def is_over(self) -> bool:
        """Returns whether its containers will never run again, so that its cards are free."""
        return self.status is not None and self.status.phase in _TERMINAL
