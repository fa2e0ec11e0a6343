"""Defines stored pods with the conditions that schedulers report, which only commands read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from .. import names
from .stored_pod import Status, StoredPod

_SCHEDULED: Final = "PodScheduled"
_PATIENCE: Final = timedelta(seconds=60)
"""A scheduler tries a new pod within seconds, unless thousands wait."""


class PodCondition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class ReportedStatus(Status, frozen=True, rename="camel"):
    conditions: list[PodCondition] | None = None


class ReportedPod(StoredPod, frozen=True, rename="camel"):
    status: ReportedStatus | None = None

    @property
    def scheduler(self) -> str:
        return (self.spec and self.spec.scheduler_name) or names.DEFAULT_SCHEDULER

    @property
    def refusal(self) -> PodCondition | None:
        """Returns what the scheduler said when it last found no node; None if it said nothing."""
        conditions = (self.status and self.status.conditions) or ()
        return next((each for each in conditions if each.type == _SCHEDULED and each.status == "False"), None)

    def waits_untried(self, now: datetime) -> bool:
        """Returns whether a scheduler should have tried the pod by now; no scheduler tries a pod with a gate."""
        created = self.meta.creation_timestamp
        if self.node or self.gates or self.is_over or self.refusal is not None or self.meta.deletion_timestamp:
            return False
        return created is not None and datetime.fromisoformat(created) + _PATIENCE <= now
