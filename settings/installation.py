"""The settings of an installation: one file for all of its processes.

All mistakes in the file are reported at once, each with its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator

from halfcard import names
from halfcard.capacity import MOST_REPLICAS, CapacityRules
from halfcard.dialects import ALL, Dialect, Dialects
from halfcard.dialects.aliyun import Aliyun
from halfcard.dialects.vcuda import Vcuda
from halfcard.exit_codes import UnusableInputError
from halfcard.isolation.mode import IsolationMode
from halfcard.pod.card_preferences import POLICIES
from halfcard.pod.holders import WELL_KNOWN, Holders
from halfcard.problems import RULES, Severity
from halfcard.quota.derived_resources import DerivedSettings

from .sections import (
    BY_CODE,
    CUSTOM_KIND,
    DNS,
    FOLDER,
    NAMESPACE,
    NOTHING_ELSE,
    POD_TEMPLATES,
    RUNTIME_CLASS,
    SYSTEM_WORKLOAD,
    DerivedResources,
    DialectName,
    ModelPart,
    ModelStrength,
    PodPath,
    PolicyName,
    Section,
    TimeSlicing,
    TolerationSetting,
    VcudaPrefix,
)


class SettingsError(UnusableInputError):
    """The settings are invalid; its text has one line per mistake."""


class Settings(BaseModel):
    """The file, key by key."""

    model_config = Section.model_config

    dialects: list[DialectName] = [dialect.name for dialect in ALL]
    """The systems whose resource names are enabled."""

    vcuda_prefixes: list[VcudaPrefix] = []
    """Further domains of vcuda-core and vcuda-memory; each is a dialect with that name."""

    aliyun_memory_unit: Literal["GiB", "MiB"] = "GiB"
    """The memory unit that gpushare's node plugin was started with."""

    severities: Annotated[dict[str, Severity], Field(json_schema_extra=BY_CODE)] = {}
    """The severity of rules, by code: deny, warn or off."""

    trusted_users: list[str] = []
    """Users that may write the annotations of Halfcard and of other GPU systems, such as another system's node agent,
    in addition to Halfcard's own accounts."""

    exempt_namespaces: list[Annotated[str, Field(pattern=NAMESPACE)]] = []
    """Namespaces that are never checked, in addition to kube-system and halfcard-system."""

    system_workloads: list[Annotated[str, Field(pattern=SYSTEM_WORKLOAD)]] = []
    """Who may mount folders of the system (HC024), such as storage and monitoring agents: a namespace, or
    `NAMESPACE/SERVICEACCOUNT`. A user who may create pods there can reach every card of a node."""

    host_paths: list[Annotated[str, Field(pattern=FOLDER)]] = []
    """Folders within those of the system that every pod may mount, such as `/var/lib/models`."""

    gpu_device_classes: list[Annotated[str, Field(pattern=DNS)]] = list(names.GPU_DEVICE_CLASSES)
    """The device classes of Dynamic Resource Allocation whose devices are GPUs: claims of them are refused (HC017)."""

    schedulers: list[str] = [names.DEFAULT_SCHEDULER]
    """The schedulers that call Halfcard's extender."""

    default_core_limit: bool = True
    """Whether a share without a core limit gets one, equal to its cores."""

    templates: Severity = Severity.DENY
    """The severity of problems in the pod template of a workload: deny, warn or off."""

    pod_templates: Annotated[dict[str, list[PodPath]], Field(json_schema_extra=POD_TEMPLATES)] = {}
    """Further custom resources that contain pods, as GROUP/KIND with the paths of their pod templates, specs of pods or
    containers, such as `{example.com/Trainer: [spec.workers.*.template]}`; an empty list for a kind without pods. Known
    ones are listed under [custom resources](admission.md#custom-resources)."""

    packing: PolicyName = "default"
    """The policy of the extender for pods that name none: default, binpack, spread or fgd."""

    model_strengths: Annotated[dict[ModelPart, ModelStrength], Field(json_schema_extra=NOTHING_ELSE)] = {}
    """How strong card models are, by a part of their name, such as `{A100: 9, T4: 4}`; one more is twice as strong.
    [Shares are placed on weak cards first](packing.md#weak-cards-first)."""

    evict_for_cards: bool = False
    """Whether the extender evicts pods of lower priority where a pod fits on no card: kube-scheduler preempts only
    where its own resource counts are exceeded. It needs `create` on `pods/eviction`."""

    evict_for_misuse: bool = False
    """Whether pods are evicted that for ten seconds use more memory of a card than they were granted, or a card of
    which they were granted nothing. Pods of exempt namespaces stay; a disruption budget keeps no pod. The extender
    needs `create` on `pods/eviction` and `delete` on `pods`."""

    repair_quotas_at_start: bool = False
    """Whether the quota service repairs ResourceQuotas whose GPU amounts Kubernetes never counts, as
    `halfcard quota repair` does: they may then refuse pods. It needs `patch` on `resourcequotas`."""

    set_scheduler_name: str | None = None
    """The scheduler name that GPU pods without one get, except those of DaemonSets."""

    set_runtime_class_name: Annotated[str, Field(pattern=RUNTIME_CLASS)] | None = None
    """The runtime class that GPU pods without one get."""

    add_tolerations: list[TolerationSetting] = []
    """Tolerations that are added to GPU pods."""

    node_resources: Annotated[list[str], Field(json_schema_extra={"uniqueItems": True})] = [
        names.VCUDA_CORE,
        names.VCUDA_MEMORY,
        names.TUYA_SGPU,
        names.NVIDIA_GPU,
    ]
    """The resources that node agents advertise. Containers that request one that is counted in MiB also get
    `halfcard.dev/slot`."""

    time_slicing: TimeSlicing | None = None
    """The ConfigMap of NVIDIA's plugin by which node agents offer time slices of cards; a node's label
    `nvidia.com/device-plugin.config` names the configuration that it uses."""

    hami_device_split: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = 1
    """How many containers may share a card under `nvidia.com/gpu` where they add HAMi's memory or cores."""

    isolation: IsolationMode = IsolationMode.WARN
    """Whether the [isolation libraries](isolation.md) hold containers to their shares: enforce, warn or off. The label
    `halfcard.dev/isolation` of a node overrides it. With `warn` a container that cannot be held starts all the
    same; with `enforce` a node that cannot hold any gets no shares."""

    derived_resources: DerivedResources | None = None
    """Whether GPU pods also request `quota.halfcard.dev/cards` and `…/shares`, which native ResourceQuotas count; pods
    that pin one of `models` also request `…/cards.MODEL` and `…/shares.MODEL`. `schedulers` names the schedulers whose
    profiles ignore the group `quota.halfcard.dev`: every scheduler of GPU pods must."""

    @field_validator("dialects")
    @classmethod
    def _known_dialects(cls, wanted: list[str]) -> list[str]:
        return _known("dialect", wanted, [dialect.name for dialect in ALL])

    @field_validator("node_resources")
    @classmethod
    def _nodes_can_offer(cls, wanted: list[str], info: ValidationInfo) -> list[str]:
        if {"dialects", "vcuda_prefixes"} - info.data.keys():
            return wanted  # their own problems are reported
        if twice := sorted({each for each in wanted if wanted.count(each) > 1}):
            raise ValueError(f"{', '.join(twice)}: name it once")
        words = Dialects((*Dialects.named(info.data["dialects"]).table, *_prefixed(info.data["vcuda_prefixes"])))
        return _known("resource", wanted, sorted({each for dialect in words.table for each in dialect.offered}))

    @field_validator("derived_resources")
    @classmethod
    def _ignored_by_schedulers(cls, wanted: DerivedResources | None, info: ValidationInfo) -> DerivedResources | None:
        """Requires a declaration for each scheduler, since Halfcard cannot read a scheduler's configuration."""
        if wanted is None:
            return wanted
        served = {*info.data.get("schedulers", ()), info.data.get("set_scheduler_name")} - {None}
        if asking := sorted(served - {*wanted.schedulers}):
            raise ValueError(
                f"{', '.join(asking)} would find no node for such pods; have its profile ignore {names.DERIVED_GROUP}"
                f" (ignoredResourceGroups of NodeResourcesFit), and add it to schedulers here"
            )
        return wanted

    @field_validator("pod_templates")
    @classmethod
    def _kinds_of_custom_resources(cls, wanted: dict[str, list[str]]) -> dict[str, list[str]]:
        if strange := sorted(each for each in wanted if not re.fullmatch(CUSTOM_KIND, each)):
            raise ValueError(f'got "{strange[0]}"; write GROUP/KIND of a custom resource, such as kubeflow.org/TFJob')
        return wanted

    @field_validator("packing")
    @classmethod
    def _known_policy(cls, wanted: str) -> str:
        return _known("policy", [wanted], list(POLICIES))[0]

    @field_validator("severities", mode="before")
    @classmethod
    def _off_without_quotes(cls, wanted: object) -> object:
        """YAML reads a bare `off` as false."""
        if not isinstance(wanted, dict):
            return wanted
        return {code: Severity.OFF if severity is False else severity for code, severity in wanted.items()}

    @field_validator("isolation", mode="before")
    @classmethod
    def _isolation_off_without_quotes(cls, wanted: object) -> object:
        """As for severities."""
        return IsolationMode.OFF if wanted is False else wanted

    @field_validator("severities")
    @classmethod
    def _known_codes(cls, wanted: dict[str, Severity]) -> dict[str, Severity]:
        _known("code", list(wanted), list(RULES))
        return wanted

    @field_validator("vcuda_prefixes")
    @classmethod
    def _said_once(cls, wanted: list[VcudaPrefix], info: ValidationInfo) -> list[VcudaPrefix]:
        """Refuses two systems with the same resource names: every container would be a mix of both."""
        spoken = info.data.get("dialects", [])
        taken = [dialect.prefix for dialect in ALL if isinstance(dialect, Vcuda) and dialect.name in spoken]
        for each in wanted:
            if each.prefix in taken:
                raise ValueError(f"{each.prefix} is already a prefix; name it once")
            taken.append(each.prefix)
        return wanted

    def enabled_dialects(self) -> Dialects:
        """Returns the enabled dialects."""
        return Dialects((*self._chosen(), *_prefixed(self.vcuda_prefixes)))

    def served_schedulers(self) -> frozenset[str]:
        """Returns the schedulers whose GPU pods get cards."""
        return frozenset(filter(None, (*self.schedulers, self.set_scheduler_name)))

    def unchecked_namespaces(self) -> frozenset[str]:
        """Returns the namespaces whose objects the API server does not send."""
        return frozenset({names.KUBE_SYSTEM, names.NAMESPACE, *self.exempt_namespaces})

    def custom_templates(self) -> Holders:
        """Returns the custom resources that contain pods; without paths, those that contain none."""
        return {**WELL_KNOWN, **{kind: tuple(paths) for kind, paths in self.pod_templates.items()}}

    def advertised_resources(self) -> tuple[str, ...]:
        """Returns the resources that node agents offer: of the defaults, those of enabled dialects."""
        spoken = self.enabled_dialects().resources
        return tuple(resource for resource in self.node_resources if resource in spoken)

    def slotted_resources(self) -> frozenset[str]:
        """Returns the offered resources for which kubelet allocates no device ids."""
        return self.enabled_dialects().without_ids & {*self.advertised_resources()}

    def derived_settings(self) -> DerivedSettings | None:
        """Returns the resources that are added for native quota."""
        return None if self.derived_resources is None else DerivedSettings(tuple(self.derived_resources.models))

    def strengths(self) -> tuple[tuple[str, float], ...]:
        """Returns the strengths by names in lower case."""
        return tuple([(part.lower(), float(strength)) for part, strength in self.model_strengths.items()])

    def capacity_rules(self) -> CapacityRules:
        """Returns how nodes of this cluster publish their capacity."""
        own = tuple(each.prefix for each in self.vcuda_prefixes)
        return CapacityRules((names.TENCENT, names.TUYA, *own), self._aliyun_unit_mib)

    @property
    def _aliyun_unit_mib(self) -> int:
        return 1024 if self.aliyun_memory_unit == "GiB" else 1

    def _chosen(self) -> list[Dialect]:
        chosen = Dialects.named(self.dialects).table
        return [Aliyun(self._aliyun_unit_mib) if isinstance(dialect, Aliyun) else dialect for dialect in chosen]


def _prefixed(wanted: list[VcudaPrefix]) -> list[Dialect]:
    return [Vcuda(each.prefix, each.prefix, each.memory_alone) for each in wanted]


def _known(what: str, wanted: list[str], known: list[str]) -> list[str]:
    if strange := [each for each in wanted if each not in known]:
        raise ValueError(f"unknown {what} {', '.join(strange)}; use {', '.join(known)}")
    return wanted


def _own_text(message: str) -> str:
    """Removes what pydantic writes before our own sentences."""
    return message.removeprefix("Value error, ")


def read_settings(raw: Mapping[str, Any]) -> Settings:
    """Reads the settings from a parsed file.

    Raises:
        SettingsError: with all mistakes.
    """
    try:
        return Settings.model_validate(raw)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc']))}: {_own_text(each['msg'])}" for each in error.errors()]
        raise SettingsError("\n".join(lines)) from error
