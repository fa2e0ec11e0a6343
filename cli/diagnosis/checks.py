"""The table of all checks, in the order of the output."""

from __future__ import annotations

from typing import Final

from . import (
    agents,
    certificate_renewal,
    gpu_quota_checks,
    native_quota_checks,
    own_pods,
    peer_programs,
    pod_records,
    refused_workloads,
    scheduler_checks,
    served_certificates,
    webhook_answers,
    webhook_registration,
)
from .finding import Check, Finding
from .snapshot import Snapshot

CHECKS: Final[tuple[Check, ...]] = (
    *webhook_registration.CHECKS,
    *webhook_answers.CHECKS,
    *served_certificates.CHECKS,
    *certificate_renewal.CHECKS,
    *scheduler_checks.CHECKS,
    *agents.CHECKS,
    *pod_records.CHECKS,
    *refused_workloads.CHECKS,
    *native_quota_checks.CHECKS,
    *gpu_quota_checks.CHECKS,
    *peer_programs.CHECKS,
    *own_pods.CHECKS,
)


def diagnose(snapshot: Snapshot) -> list[Finding]:
    found = {check.name: list(check.look(snapshot)) for check in CHECKS}
    return [
        Finding(check.name, check.severity, fault.where, fault.got, check.rule, fault.fix, fault.command)
        for check in CHECKS
        if not any(found[cause] for cause in check.unless)
        for fault in found[check.name]
    ]
