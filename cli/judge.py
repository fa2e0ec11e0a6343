"""Sends one object through both webhooks as the API server would: repaired, then judged as it will be stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from admission.dispatch import decide
from admission.policy import AdmissionPolicy
from admission.verdict import ALLOWED, Verdict
from admission.wire import ObjectKind, ReviewRequest, UserInfo
from admission.writes import MalformedObject, decode_write
from halfcard import names
from halfcard.cluster_view import ClusterView
from halfcard.dra.resource_claims import CLAIM_GROUP, CLAIM_KINDS
from halfcard.patches import PatchOperation, Pointer, apply, field_path, value_at
from halfcard.pod.holders import kind_key, known_kind
from halfcard.problems import MALFORMED, Problem

from .kubernetes_kinds import misspelled, why_not_judged

_CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": (names.MUTATE_PODS_PATH, names.VALIDATE_PODS_PATH),
    "ResourceQuota": (names.MUTATE_QUOTAS_PATH,),
    "resource.k8s.io/ResourceClaim": (names.VALIDATE_CLAIMS_PATH,),
    "resource.k8s.io/ResourceClaimTemplate": (names.VALIDATE_CLAIMS_PATH,),
}
"""The calls for a new object of each kind, in the order of the API server."""

_OF_WORKLOADS: Final = (names.MUTATE_WORKLOADS_PATH, names.VALIDATE_WORKLOADS_PATH)


@dataclass(frozen=True, slots=True)
class Judge:
    """The policy, cluster and user by which objects are judged."""

    policy: AdmissionPolicy
    cluster: ClusterView
    namespace: str = "default"
    user: str = ""

    def review(self, obj: Mapping[str, Any]) -> Item:
        """Returns the verdict of both calls as one, or why there is none."""
        namespace = str(_metadata(obj).get("namespace") or self._default_namespace(obj))
        kind = kind_of(obj)
        if odd := misspelled(kind):
            return Item(obj, namespace, Verdict((odd,)))
        try:
            verdict = self._verdict(obj, namespace)
        except MalformedObject as error:
            verdict = Verdict((_malformed(error.why),))
        return Item(obj, namespace, verdict, why_not_judged(kind, self.policy.pod_templates))

    def _default_namespace(self, obj: Mapping[str, Any]) -> str:
        """Returns the namespace for objects that name none; unknown kinds may belong to no namespace."""
        return self.namespace if self._calls(obj) else ""

    def _calls(self, obj: Mapping[str, Any]) -> tuple[str, ...]:
        kind = kind_of(obj)
        if known_kind(self.policy.pod_templates, kind.group, kind.kind):
            return _OF_WORKLOADS
        if kind.group == CLAIM_GROUP and kind.kind in CLAIM_KINDS:
            return (names.VALIDATE_CLAIMS_PATH,)
        return _CALLS.get(kind_key(kind.group, kind.kind), ())

    def _verdict(self, obj: Mapping[str, Any], namespace: str) -> Verdict:
        verdict = ALLOWED
        for path in self._calls(obj):
            verdict = _both(verdict, self._call(path, apply(obj, verdict.changes), namespace))
            if not verdict.allowed:
                break
        return verdict

    def _call(self, path: str, obj: Mapping[str, Any], namespace: str) -> Verdict:
        request = ReviewRequest(
            uid="",
            operation="CREATE",
            kind=kind_of(obj),
            namespace=namespace,
            user_info=UserInfo(self.user),
            object=dict(obj),
        )
        return decide(path, decode_write(request, self.policy), self.policy, self.cluster)


@dataclass(frozen=True, slots=True)
class Item:
    """An object, its verdict and its patch; `not_judged` says why it has no verdict."""

    obj: Mapping[str, Any]
    namespace: str
    verdict: Verdict
    not_judged: str | None = None

    @property
    def allowed(self) -> bool | None:
        return self.verdict.allowed if self.not_judged is None else None

    @property
    def kind(self) -> str:
        return str(self.obj.get("kind") or "")

    @property
    def name(self) -> str:
        metadata = _metadata(self.obj)
        generated = metadata.get("generateName")
        return str(metadata.get("name") or (f"{generated}*" if generated else ""))

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def as_json(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "allowed": self.allowed,
            "not_judged": self.not_judged,
            "problems": [msgspec.to_builtins(problem) for problem in verdict.problems],
            "warnings": list(verdict.warnings),
            "patch": [change.as_json() for change in verdict.changes],
        }


def kind_of(obj: Mapping[str, Any]) -> ObjectKind:
    group, separator, _ = str(obj.get("apiVersion") or "").rpartition("/")
    return ObjectKind(str(obj.get("kind")), group if separator else "")


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
    """Yields one line for each member, which reads better than a whole mapping."""
    if isinstance(change.value, Mapping):
        for key, value in change.value.items():
            yield (*change.pointer, key), value
    else:
        yield change.pointer, change.value


def _both(first: Verdict, second: Verdict) -> Verdict:
    warnings = tuple(dict.fromkeys((*first.warnings, *second.warnings)))
    return Verdict(second.problems, warnings, (*first.changes, *second.changes) if second.allowed else ())


def _malformed(text: str) -> Problem:
    """Rewords msgspec's error, such as: Expected `array | null`, got `object` - at `$.spec.containers`."""
    what, _, where = text.partition(" - at ")
    wanted, _, got = what.replace("`", "").removeprefix("Expected ").partition(", got ")
    return MALFORMED.broken(where.strip("`$.") or "object", got or what, f"write {wanted.removesuffix(' | null')}")


def _metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
