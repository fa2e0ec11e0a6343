"""One object through both webhooks, as the API server would send it: repaired, then judged as it will be stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from admission.mutation.resource_quotas import mutate_quota
from admission.mutation.workloads import TEMPLATES, mutate_workload, validate_workload
from admission.policy import AdmissionPolicy
from admission.review import ALLOWED, Verdict, mutate_pod, validate_pod
from admission.rules.subject import ReviewContext, ReviewStage
from halfcard.cluster_view import ClusterView
from halfcard.patches import PatchOperation, Pointer, apply, field_path, value_at
from halfcard.pod.spec import Pod
from halfcard.problems import MALFORMED, Problem
from halfcard.quota.native_quota import ResourceQuota

_NAMESPACED: Final = frozenset({"Pod", "ResourceQuota", *TEMPLATES})


@dataclass(frozen=True, slots=True)
class Judge:
    """Under which circumstances objects are judged."""

    policy: AdmissionPolicy
    cluster: ClusterView
    namespace: str = "default"
    user: str = ""

    def review(self, obj: Mapping[str, Any]) -> Item:
        """The verdict of both calls in one."""
        namespace = str(_metadata(obj).get("namespace") or self._default_namespace(obj))
        try:
            verdict = self._verdict(obj, namespace)
        except msgspec.ValidationError as error:
            verdict = Verdict((_malformed(str(error)),))
        return Item(obj, namespace, verdict)

    def _default_namespace(self, obj: Mapping[str, Any]) -> str:
        """Kinds that we do not know may belong to no namespace at all."""
        return self.namespace if obj.get("kind") in _NAMESPACED else ""

    def _verdict(self, obj: Mapping[str, Any], namespace: str) -> Verdict:
        kind = str(obj.get("kind"))
        if namespace in self.policy.exempt_namespaces:
            return ALLOWED
        if kind == "ResourceQuota":
            return mutate_quota(msgspec.convert(obj, ResourceQuota), self.policy)
        if kind == "Pod":
            return self._pod(obj, namespace)
        return self._workload(kind, obj, namespace) if kind in TEMPLATES else ALLOWED

    def _pod(self, obj: Mapping[str, Any], namespace: str) -> Verdict:
        mutated = mutate_pod(msgspec.convert(obj, Pod), self._around(namespace, ReviewStage.PROPOSED))
        if not mutated.allowed:
            return mutated
        stored = msgspec.convert(apply(obj, mutated.changes), Pod)
        return _both(mutated, validate_pod(stored, self._around(namespace, ReviewStage.FINAL)))

    def _workload(self, kind: str, obj: Mapping[str, Any], namespace: str) -> Verdict:
        mutated = mutate_workload(kind, obj, self._around(namespace, ReviewStage.PROPOSED))
        if not mutated.allowed:
            return mutated
        stored = apply(obj, mutated.changes)
        return _both(mutated, validate_workload(kind, stored, self._around(namespace, ReviewStage.TEMPLATE)))

    def _around(self, namespace: str, stage: ReviewStage) -> ReviewContext:
        return ReviewContext(self.policy, self.cluster, namespace, self.user, stage)


@dataclass(frozen=True, slots=True)
class Item:
    """An object and what became of it."""

    obj: Mapping[str, Any]
    namespace: str
    verdict: Verdict

    @property
    def kind(self) -> str:
        return str(self.obj.get("kind") or "")

    @property
    def name(self) -> str:
        return _title(self.obj)

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def as_json(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "allowed": verdict.allowed,
            "problems": [msgspec.to_builtins(problem) for problem in verdict.problems],
            "warnings": list(verdict.warnings),
            "patch": [change.as_json() for change in verdict.changes],
        }


def differences(obj: Any, changes: Iterable[PatchOperation]) -> Iterator[str]:
    """Describes a patch: the field, the old value, the new value."""
    for change in changes:
        for pointer, value in _leaves(change):
            where, before = field_path(pointer), value_at(obj, pointer)
            if change.op == "remove":
                yield f"- {where}: {_plain(before)}"
            elif before is None:
                yield f"+ {where}: {_plain(value)}"
            else:
                yield f"~ {where}: {_plain(before)} -> {_plain(value)}"


def _leaves(change: PatchOperation) -> Iterator[tuple[Pointer, Any]]:
    """A member a line reads better than a whole mapping."""
    if isinstance(change.value, Mapping):
        for key, value in change.value.items():
            yield (*change.pointer, key), value
    else:
        yield change.pointer, change.value


def _both(first: Verdict, second: Verdict) -> Verdict:
    warnings = tuple(dict.fromkeys((*first.warnings, *second.warnings)))
    return Verdict(second.problems, warnings, first.changes if second.allowed else ())


def _malformed(text: str) -> Problem:
    """Msgspec says: Expected `array | null`, got `object` - at `$.spec.containers`."""
    what, _, where = text.partition(" - at ")
    wanted, _, got = what.replace("`", "").removeprefix("Expected ").partition(", got ")
    return MALFORMED.broken(where.strip("`$.") or "object", got or what, f"write {wanted.removesuffix(' | null')}")


def _metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _title(obj: Mapping[str, Any]) -> str:
    metadata = _metadata(obj)
    generated = metadata.get("generateName")
    return str(metadata.get("name") or (f"{generated}*" if generated else ""))


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
