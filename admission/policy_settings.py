"""The policy that an installation's settings make."""

from __future__ import annotations

from halfcard import names
from halfcard.pod.holders import BUILT_IN
from halfcard.pod.spec import Toleration
from settings.installation import Settings

from .policy import AdmissionPolicy, PlacementDefaults


def policy_of(settings: Settings) -> AdmissionPolicy:
    tolerations = tuple(Toleration(**each.model_dump()) for each in settings.add_tolerations)
    return AdmissionPolicy(
        dialects=settings.enabled_dialects(),
        severities=settings.severities,
        trusted_users=names.OWN_USERS.union(settings.trusted_users),
        exempt_namespaces=settings.unchecked_namespaces(),
        system_workloads=frozenset(settings.system_workloads),
        host_paths=tuple(settings.host_paths),
        device_classes=frozenset(settings.gpu_device_classes),
        schedulers=settings.served_schedulers(),
        default_core_limit=settings.default_core_limit,
        placement=PlacementDefaults(settings.set_scheduler_name, settings.set_runtime_class_name, tolerations),
        templates=settings.templates,
        pod_templates={**settings.custom_templates(), **BUILT_IN},
        slotted=settings.slotted_resources(),
        derived=settings.derived_settings(),
    )
