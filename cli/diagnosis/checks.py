"""The table of all checks, in the order in which their findings are told."""

from __future__ import annotations

from typing import Final

from . import agents, answers, budgets, certificates, installation, keeping, peers, pods, quotas, scheduling, webhooks
from .finding import Check, Finding
from .snapshot import Snapshot

CHECKS: Final[tuple[Check, ...]] = (
    *webhooks.CHECKS,
    *answers.CHECKS,
    *certificates.CHECKS,
    *keeping.CHECKS,
    *scheduling.CHECKS,
    *agents.CHECKS,
    *pods.CHECKS,
    *quotas.CHECKS,
    *budgets.CHECKS,
    *peers.CHECKS,
    *installation.CHECKS,
)


def diagnose(snapshot: Snapshot) -> list[Finding]:
    found = {check.name: list(check.look(snapshot)) for check in CHECKS}
    return [
        Finding(check.name, check.severity, fault.where, fault.got, check.rule, fault.fix, fault.command)
        for check in CHECKS
        if not any(found[cause] for cause in check.unless)
        for fault in found[check.name]
    ]
