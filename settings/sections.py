"""The sections of the settings file, and the types of single settings with their JSON schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator

from halfcard.dialects import ALL
from halfcard.pod.card_preferences import POLICIES
from halfcard.problems import RULES, Severity

DNS = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
NAMESPACE = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
RUNTIME_CLASS = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"  # the API server refuses pods with any other
_TAINT = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_MODEL = r"^[A-Za-z0-9]([-._A-Za-z0-9]{0,54}[A-Za-z0-9])?$"  # the end of the name of a resource
CUSTOM_KIND = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+/[A-Z][A-Za-z0-9]*"
_POD_PATH = r"^[A-Za-z0-9]+(\.([A-Za-z0-9]+|\*))*$"
SYSTEM_WORKLOAD = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"
FOLDER = r"^(/[^/.][^/]*)+$"  # neither / itself, nor a path that could mean another one
_CONFIG_KEY = r"^[-._a-zA-Z0-9]+$"
_CONFIG_MAP = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"


def _listed(known: Iterable[str]) -> dict[str, JsonValue]:
    """Adds the values that a validator accepts to the schema, which refuses others before a process reads them."""
    return {"enum": [*known]}


BY_CODE: dict[str, JsonValue] = {
    "patternProperties": {f"^({'|'.join(RULES)})$": _listed(map(str, Severity))},
    "additionalProperties": False,
}
PodPath = Annotated[str, Field(pattern=_POD_PATH)]
POD_TEMPLATES: dict[str, JsonValue] = {
    "patternProperties": {f"^{CUSTOM_KIND}$": {"type": "array", "items": {"type": "string", "pattern": _POD_PATH}}},
    "additionalProperties": False,
}
ModelPart = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-._ A-Za-z0-9]{0,61}[A-Za-z0-9])?$")]
ModelStrength = Annotated[int, Field(ge=0, le=20)]
NOTHING_ELSE: dict[str, JsonValue] = {"additionalProperties": False}
"""For a mapping: its schema then refuses keys that do not match the pattern, as pydantic does."""
DialectName = Annotated[str, Field(json_schema_extra=_listed(dialect.name for dialect in ALL))]
PolicyName = Annotated[str, Field(json_schema_extra=_listed(POLICIES))]


class Section(BaseModel):
    """A mapping without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class VcudaPrefix(Section):
    """A company's own domain for gpu-manager's resources."""

    prefix: Annotated[str, Field(pattern=DNS)]
    memory_alone: bool = False


class TolerationSetting(Section):
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"required": ["value"], "properties": {"value": {"type": "string"}}},
            "then": {"required": ["operator"], "properties": {"operator": {"const": "Equal"}}},
        }
    )

    key: Annotated[str, Field(pattern=_TAINT)]
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None

    @field_validator("value")
    @classmethod
    def _is_compared(cls, wanted: str | None, info: ValidationInfo) -> str | None:
        """The API server refuses pods whose toleration has a value that is not compared."""
        if wanted is not None and info.data.get("operator") == "Exists":
            raise ValueError(f'got "{wanted}"; a value needs operator: Equal')
        return wanted


class TimeSlicing(Section):
    """NVIDIA's ConfigMap of named configurations; a node's label names the one that it uses."""

    config: Annotated[str, Field(json_schema_extra={"pattern": _CONFIG_MAP})]
    default: Annotated[str, Field(pattern=_CONFIG_KEY)] = "any"

    @field_validator("config")
    @classmethod
    def _names_a_config_map(cls, wanted: str) -> str:
        if not re.fullmatch(_CONFIG_MAP, wanted):
            raise ValueError(f'got "{wanted}"; write NAMESPACE/NAME of a ConfigMap, such as gpu-operator/time-slicing')
        return wanted

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and name of the ConfigMap."""
        namespace, _, name = self.config.partition("/")
        return namespace, name


class DerivedResources(Section):
    """Cards and shares as resources that native ResourceQuotas count."""

    schedulers: list[str]
    models: list[Annotated[str, Field(pattern=_MODEL)]] = []
