"""Defines stored pods with the conditions that schedulers report, which only commands read."""

from __future__ import annotations

from typing import Final

import msgspec

from .. import names
from .stored_pod import Status, StoredPod

_SCHEDULED: Final = "PodScheduled"


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
