"""Decides which pods a ResourceQuota counts: its scopes, by the rules of the API server."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from ..pod.stored_pod import Status, StoredPod, StoredSpec

_BEST_EFFORT: Final = "BestEffort"


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    namespaces: tuple[str, ...] | None = None
    namespace_selector: dict[str, Any] | None = None

    @property
    def reaches_out(self) -> bool:
        """An empty selector selects all namespaces."""
        return bool(self.namespaces) or self.namespace_selector is not None


class _WeightedTerm(msgspec.Struct, frozen=True, rename="camel"):
    pod_affinity_term: _Term = _Term()


class _PodAffinity(msgspec.Struct, frozen=True, rename="camel"):
    required: tuple[_Term, ...] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[_WeightedTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )

    @property
    def reaches_out(self) -> bool:
        weighted = [each.pod_affinity_term for each in self.preferred or ()]
        return any(each.reaches_out for each in (*(self.required or ()), *weighted))


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None

    @property
    def reaches_out(self) -> bool:
        return any(each is not None and each.reaches_out for each in (self.pod_affinity, self.pod_anti_affinity))


class _PodSpec(StoredSpec, frozen=True, rename="camel"):
    active_deadline_seconds: int | None = None
    priority_class_name: str | None = None
    affinity: _Affinity | None = None


class _PodStatus(Status, frozen=True, rename="camel"):
    qos_class: str = ""


_NO_SPEC: Final = _PodSpec()


class QuotaPod(StoredPod, frozen=True, rename="camel"):
    """A pod with all that a ResourceQuota looks at."""

    spec: _PodSpec | None = None
    status: _PodStatus | None = None

    @property
    def has_deadline(self) -> bool:
        deadline = (self.spec or _NO_SPEC).active_deadline_seconds
        return deadline is not None and deadline >= 0

    @property
    def qos(self) -> str:
        """The QoS class, which the API server sets before it calls a validating webhook; empty where it is missing."""
        return self.status.qos_class if self.status is not None else ""

    @property
    def priority_class(self) -> str:
        return (self.spec or _NO_SPEC).priority_class_name or ""

    @property
    def reaches_out(self) -> bool:
        """Whether its affinity looks at pods of other namespaces."""
        affinity = (self.spec or _NO_SPEC).affinity
        return affinity is not None and affinity.reaches_out

    def is_released(self, now_s: float) -> bool:
        """Returns whether a stored pod is not charged any more: it has ended, or is stuck in its deletion."""
        gone_by_s = self.meta.gone_by_s
        return self.is_over or (gone_by_s is not None and now_s > gone_by_s)


class ScopeRequirement(msgspec.Struct, frozen=True, rename="camel"):
    """One scope. Of those but PriorityClass, the API server takes no other operator than Exists."""

    scope_name: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = "Exists"
    values: tuple[str, ...] | None = None

    def __str__(self) -> str:
        values = f" {', '.join(self.values)}" if self.values else ""
        return self.scope_name if self.operator == "Exists" else f"{self.scope_name} {self.operator}{values}"


def holds(scope: ScopeRequirement, pod: QuotaPod) -> bool:
    """A scope that is not known is one of other objects than pods."""
    match scope.scope_name:
        case "Terminating":
            return pod.has_deadline
        case "NotTerminating":
            return not pod.has_deadline
        case "BestEffort":
            return pod.qos == _BEST_EFFORT
        case "NotBestEffort":
            return pod.qos not in ("", _BEST_EFFORT)
        case "PriorityClass":
            return _is_of_class(scope, pod.priority_class)
        case "CrossNamespacePodAffinity":
            return pod.reaches_out
    return False


def _is_of_class(scope: ScopeRequirement, name: str) -> bool:
    values = scope.values or ()
    match scope.operator:
        case "In":
            return bool(name) and name in values
        case "NotIn":
            return name not in values
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
