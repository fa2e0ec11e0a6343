"""The table of all checks, in the order of the output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from . import pod_records, presence, unread_sources
from .certificates import due_certificates, served_certificates, trusted_authorities
from .finding import Check, Finding, FoundFault
from .nodes import agents, node_cards, node_health, node_versions, peer_programs
from .processes import own_services, process_pods, process_rights, process_settings, process_workloads
from .quotas import gpu_quota_checks, native_quota_checks
from .scheduler import extender_calls, scheduler_checks, scheduler_programs, waiting_pods
from .snapshot import Snapshot
from .webhooks import device_classes, refused_workloads, webhook_answers, webhook_registration

CHECKS: Final[tuple[Check, ...]] = (
    *presence.CHECKS,
    *process_settings.CHECKS,
    *process_workloads.CHECKS,
    *process_pods.CHECKS,
    *process_rights.CHECKS,
    *node_versions.CHECKS,
    *node_health.CHECKS,
    *webhook_registration.CHECKS,
    *own_services.CHECKS,
    *webhook_answers.CHECKS,
    *trusted_authorities.CHECKS,
    *due_certificates.CHECKS,
    *served_certificates.CHECKS,
    *scheduler_programs.CHECKS,
    *scheduler_checks.CHECKS,
    *extender_calls.CHECKS,
    *waiting_pods.CHECKS,
    *agents.CHECKS,
    *node_cards.CHECKS,
    *pod_records.CHECKS,
    *refused_workloads.CHECKS,
    *device_classes.CHECKS,
    *native_quota_checks.CHECKS,
    *gpu_quota_checks.CHECKS,
    *peer_programs.CHECKS,
    *unread_sources.CHECKS,
)

_BY_NAME: Final = {check.name: check for check in CHECKS}


class Diagnosis(NamedTuple):
    """What is wrong.

    Attributes:
        findings: each with its fix.
        consequences: what these explain; nothing is to be done about them.
    """

    findings: tuple[Finding, ...]
    consequences: tuple[Finding, ...] = ()


def diagnose(snapshot: Snapshot) -> Diagnosis:
    """Applies all checks; if Halfcard is not installed, only that is found."""
    found = {check.name: list(check.look(snapshot)) for check in CHECKS}
    if found[presence.NOT_INSTALLED]:
        found = {presence.NOT_INSTALLED: found[presence.NOT_INSTALLED]}
    return _sorted(
        Finding(check.name, check.severity, *fault[:2], check.rule, *fault[2:4], _cause(check, fault, found))
        for check in CHECKS
        for fault in found.get(check.name, ())
    )


def _sorted(findings: Iterable[Finding]) -> Diagnosis:
    every = tuple(findings)
    return Diagnosis(tuple(each for each in every if not each.cause), tuple(each for each in every if each.cause))


def _cause(check: Check, fault: FoundFault, found: Mapping[str, Sequence[FoundFault]]) -> str:
    """Returns the check that explains a fault, and is not explained itself; empty if there is none."""
    for name in check.unless:
        for other in found.get(name, ()):
            if other.may_explain(fault):
                return _cause(_BY_NAME[name], other, found) or name
    return ""
