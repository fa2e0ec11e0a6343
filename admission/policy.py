"""What an installation has decided: which systems are spoken, how strict each rule is, who is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.pod.spec import Toleration
from halfcard.problems import RULES, Problem, Severity
from halfcard.quota.derived_resources import DerivedSettings


@dataclass(frozen=True, slots=True)
class PlacementDefaults:
    """What every GPU pod is given where it does not say otherwise; None and empty leave it alone."""

    scheduler_name: str | None = None
    runtime_class_name: str | None = None
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """The settings that decisions depend on.

    Attributes:
        severities: rules that are stricter or milder than the table says.
        trusted_users: who may write the annotations that Halfcard and its peers own.
        exempt_namespaces: never judged; a pod there may be part of the cluster's own machinery.
        schedulers: those that ask Halfcard's extender.
        default_core_limit: write the burst ceiling where nobody did.
        templates: what a mistake in a workload's template does.
        slotted: resources whose containers are known to the node by slots.
        derived: what is added for native quota to count by; None for nothing.
    """

    dialects: Dialects = field(default_factory=Dialects)
    severities: Mapping[str, Severity] = field(default_factory=dict)
    trusted_users: frozenset[str] = names.OWN_USERS
    exempt_namespaces: frozenset[str] = frozenset({names.KUBE_SYSTEM, names.NAMESPACE})
    schedulers: frozenset[str] = frozenset({names.DEFAULT_SCHEDULER})
    default_core_limit: bool = True
    placement: PlacementDefaults = PlacementDefaults()
    templates: Severity = Severity.DENY
    slotted: frozenset[str] = frozenset()
    derived: DerivedSettings | None = None

    @property
    def counted(self) -> frozenset[str]:
        """The resources of which native quota is looked at."""
        return self.dialects.resources | (self.derived.resources if self.derived else frozenset())

    def severity(self, problem: Problem) -> Severity:
        return self.severities.get(problem.code, RULES[problem.code].severity)
