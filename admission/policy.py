"""The decisions of an installation: enabled dialects, the severity of each rule, and trusted users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.pod.holders import BUILT_IN, WELL_KNOWN, Holders
from halfcard.pod.spec import Toleration
from halfcard.problems import RULES, Problem, Severity
from halfcard.quota.derived_resources import DerivedSettings


@dataclass(frozen=True, slots=True)
class PlacementDefaults:
    """Fields that GPU pods receive where they do not set them; None and empty leave a pod as it is."""

    scheduler_name: str | None = None
    runtime_class_name: str | None = None
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """The settings that decisions depend on.

    Attributes:
        severities: rules with another severity than in the table.
        trusted_users: users who may write the annotations that Halfcard and its peers own.
        exempt_namespaces: never judged; a pod there may be part of the cluster's own machinery.
        system_workloads: namespaces, or `namespace/service account`, whose pods may mount folders of the system.
        host_paths: folders of the system that every pod may mount.
        device_classes: those of DRA whose devices are GPUs.
        schedulers: those that call Halfcard's extender.
        default_core_limit: whether a missing core limit is written.
        templates: how mistakes in a workload's template are handled.
        pod_templates: the kinds that contain pod templates, and where.
        slotted: resources whose containers are identified by slots on the node.
        derived: resources that are added for native quota; None for none.
    """

    dialects: Dialects = field(default_factory=Dialects)
    severities: Mapping[str, Severity] = field(default_factory=dict)
    trusted_users: frozenset[str] = names.OWN_USERS
    exempt_namespaces: frozenset[str] = frozenset({names.KUBE_SYSTEM, names.NAMESPACE})
    system_workloads: frozenset[str] = frozenset()
    host_paths: tuple[str, ...] = ()
    device_classes: frozenset[str] = frozenset(names.GPU_DEVICE_CLASSES)
    schedulers: frozenset[str] = frozenset({names.DEFAULT_SCHEDULER})
    default_core_limit: bool = True
    placement: PlacementDefaults = PlacementDefaults()
    templates: Severity = Severity.DENY
    pod_templates: Holders = field(default_factory=lambda: {**WELL_KNOWN, **BUILT_IN})
    slotted: frozenset[str] = frozenset()
    derived: DerivedSettings | None = None

    @property
    def custom_kinds(self) -> frozenset[str]:
        """The custom resources that contain pod templates."""
        return frozenset(kind for kind, paths in self.pod_templates.items() if paths) - BUILT_IN.keys()

    @property
    def counted(self) -> frozenset[str]:
        """The resources whose native quotas are checked."""
        return self.dialects.resources | (self.derived.resources if self.derived else frozenset())

    def severity(self, problem: Problem) -> Severity:
        return self.severities.get(problem.code, RULES[problem.code].severity)

    def is_system_workload(self, namespace: str, service_account: str | None) -> bool:
        """Returns whether only those who run the cluster can create such a pod."""
        return not self.system_workloads.isdisjoint((namespace, f"{namespace}/{service_account or 'default'}"))
