"""The settings of an installation, as people write them in one file for all of its processes.

Every mistake in the file is told at once, with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from halfcard import names
from halfcard.capacity import Dealings
from halfcard.dialects import ALL, Dialect, Dialects
from halfcard.dialects.aliyun import Aliyun
from halfcard.dialects.vcuda import Vcuda
from halfcard.problems import RULES, Severity
from halfcard.wanted import POLICIES

_DNS = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class SettingsError(Exception):
    """The settings cannot be used; one line per mistake."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VcudaPrefix(_Model):
    """A company's own domain for gpu-manager's resources."""

    prefix: Annotated[str, Field(pattern=_DNS)]
    memory_alone: bool = False


class TolerationSetting(_Model):
    key: str
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Settings(_Model):
    """The file, key by key."""

    dialects: list[str] = [dialect.name for dialect in ALL]
    """The systems that are spoken."""

    vcuda_prefixes: list[VcudaPrefix] = []
    """Further domains for vcuda-core and vcuda-memory; each becomes a dialect of the same name."""

    aliyun_memory_unit: Literal["GiB", "MiB"] = "GiB"
    """What gpushare's node plugin was started with."""

    severities: dict[str, Severity] = {}
    """By code: deny, warn or off."""

    trusted_users: list[str] = []
    """Who may write the annotations that Halfcard and its peers own, such as a peer's node agent, besides
    Halfcard's own accounts."""

    exempt_namespaces: list[str] = []
    """Namespaces that are never judged, besides kube-system and Halfcard's own."""

    schedulers: list[str] = [names.DEFAULT_SCHEDULER]
    """The schedulers that ask Halfcard's extender."""

    default_core_limit: bool = True
    """Write the burst ceiling equal to the share where nobody wrote one."""

    templates: Severity = Severity.DENY
    """What a mistake in a workload's template does."""

    packing: str = "default"
    """How the extender chooses among nodes and cards for pods that do not say: default, binpack, spread or fgd."""

    evict_for_cards: bool = False
    """Whether the extender evicts pods of lower priority where a pod finds no card: kube-scheduler preempts only where
    its counts are short. It needs `create` on `pods/eviction`."""

    set_scheduler_name: str | None = None
    """Given to GPU pods that name no scheduler."""

    set_runtime_class_name: str | None = None
    """Given to GPU pods that name no runtime class."""

    add_tolerations: list[TolerationSetting] = []
    """Added to GPU pods."""

    @field_validator("dialects")
    @classmethod
    def _known_dialects(cls, wanted: list[str]) -> list[str]:
        return _known("dialect", wanted, [dialect.name for dialect in ALL])

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

    @field_validator("severities")
    @classmethod
    def _known_codes(cls, wanted: dict[str, Severity]) -> dict[str, Severity]:
        _known("code", list(wanted), list(RULES))
        return wanted

    @field_validator("vcuda_prefixes")
    @classmethod
    def _said_once(cls, wanted: list[VcudaPrefix], info: ValidationInfo) -> list[VcudaPrefix]:
        """Two systems with the same words would make every container a mix of both."""
        spoken = info.data.get("dialects", [])
        taken = [dialect.prefix for dialect in ALL if isinstance(dialect, Vcuda) and dialect.name in spoken]
        for each in wanted:
            if each.prefix in taken:
                raise ValueError(f"{each.prefix} is there already; name it once")
            taken.append(each.prefix)
        return wanted

    def words(self) -> Dialects:
        """What resources mean here."""
        return Dialects((*self._chosen(), *self._prefixed()))

    def prefixes(self) -> dict[str, str]:
        """The domains of gpu-manager's resources, by dialect."""
        return {dialect.name: dialect.prefix for dialect in self.words().table if isinstance(dialect, Vcuda)}

    def dealings(self) -> Dealings:
        """How nodes of this cluster publish what they have."""
        own = tuple(each.prefix for each in self.vcuda_prefixes)
        return Dealings((names.TENCENT, names.TUYA, *own), self._aliyun_unit_mib)

    @property
    def _aliyun_unit_mib(self) -> int:
        return 1024 if self.aliyun_memory_unit == "GiB" else 1

    def _chosen(self) -> list[Dialect]:
        chosen = Dialects.named(self.dialects).table
        return [Aliyun(self._aliyun_unit_mib) if isinstance(dialect, Aliyun) else dialect for dialect in chosen]

    def _prefixed(self) -> list[Dialect]:
        return [Vcuda(each.prefix, each.prefix, each.memory_alone) for each in self.vcuda_prefixes]


def _known(what: str, wanted: list[str], known: list[str]) -> list[str]:
    if strange := [each for each in wanted if each not in known]:
        raise ValueError(f"unknown {what} {', '.join(strange)}; use {', '.join(known)}")
    return wanted


def _words(message: str) -> str:
    """Without what pydantic puts before the sentences that are ours."""
    return message.removeprefix("Value error, ")


def read_settings(raw: Mapping[str, Any]) -> Settings:
    """The settings in a parsed file.

    Raises:
        SettingsError: with every mistake.
    """
    try:
        return Settings.model_validate(raw)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc']))}: {_words(each['msg'])}" for each in error.errors()]
        raise SettingsError("\n".join(lines)) from error
