"""Judges which of Kubernetes' own ResourceQuotas leave too little for a pod, by their own rules.

The API server's plugin enforces them; this module predicts its answer. Invariant: where something is unknown, such as
an amount that is not counted yet, no quota is reported as exceeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from ..pod.spec import Amounts
from ..pod.stored_pod import StoredMetadata
from ..quantity import InvalidQuantity, Quantity
from .native_scopes import QuotaPod, ScopeRequirement, holds

COUNTED: Final = "requests."
"""The prefix of the only keys that Kubernetes counts of an extended resource."""

UNCOUNTED: Final = ("limits.", "")
"""Prefixes that Kubernetes accepts but never counts."""


def resource_of(key: str) -> str:
    """Returns the resource that a key of a quota counts, or would count."""
    for side in (COUNTED, *UNCOUNTED):
        key = key.removeprefix(side)
    return key


Cost = Mapping[str, Quantity]
"""Amounts by resource."""

_NAMELESS: Final = StoredMetadata()


class _ScopeSelector(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: tuple[ScopeRequirement, ...] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    hard: Amounts | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: _ScopeSelector | None = None


class _Status(msgspec.Struct, frozen=True):
    hard: Amounts | None = None
    used: Amounts | None = None


_NO_SPEC: Final = _Spec()


class ResourceQuota(msgspec.Struct, frozen=True):
    metadata: StoredMetadata | None = None
    spec: _Spec | None = None
    status: _Status = _Status()

    @property
    def meta(self) -> StoredMetadata:
        return self.metadata or _NAMELESS

    @property
    def title(self) -> str:
        """The name of the quota for messages."""
        return f"{self.meta.namespace}/{self.meta.name}"

    @property
    def reference(self) -> dict[str, str]:
        meta = self.meta
        named = {"namespace": meta.namespace or "", "name": meta.title, "uid": meta.uid}
        return {"apiVersion": "v1", "kind": "ResourceQuota", **named}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.meta.annotations or {}

    @property
    def hard(self) -> Mapping[str, str]:
        return _texts((self.spec or _NO_SPEC).hard)

    @property
    def used(self) -> Mapping[str, str]:
        """The used amounts, for the keys that are counted at all."""
        return _texts(self.status.used)

    @property
    def enforced(self) -> Mapping[str, str]:
        """The enforced limits: after a change, the old ones until everything has been counted again."""
        wanted, in_force, used = self.hard, _texts(self.status.hard), self.used
        return {
            key: text
            for key, text in in_force.items()
            if key in used and _nanos(used[key]) is not None and _nanos(text) == _nanos(wanted.get(key)) is not None
        }

    @property
    def scopes(self) -> tuple[ScopeRequirement, ...]:
        """Its scopes: it counts the pods that match all of them."""
        spec = self.spec or _NO_SPEC
        listed = tuple([ScopeRequirement(scope) for scope in spec.scopes or ()])
        return listed + (spec.scope_selector.match_expressions or () if spec.scope_selector else ())

    def counts(self, pod: QuotaPod) -> bool:
        return all(holds(each, pod) for each in self.scopes)

    def names(self, resources: Iterable[str]) -> bool:
        """Returns whether it has a key of one of these resources, counted or not."""
        hard = self.hard
        return any(side + each in hard for each in resources for side in (COUNTED, *UNCOUNTED))

    def uncounted(self, resources: Iterable[str]) -> list[str]:
        """Returns the keys of these resources that Kubernetes never counts, where no other key counts instead."""
        hard = self.hard
        silent = [each for each in resources if COUNTED + each not in hard]
        return sorted(side + each for each in silent for side in UNCOUNTED if side + each in hard)


def _texts(amounts: Amounts | None) -> Mapping[str, str]:
    return {key: str(text) for key, text in (amounts or {}).items()}


def _nanos(text: str | None) -> int | None:
    """Parses an amount; None where it is missing or unreadable."""
    try:
        return None if text is None else Quantity.parse(text).nanos
    except InvalidQuantity:
        return None


class Shortfall(NamedTuple):
    """One resource of which a quota has too little left."""

    resource: str
    asked: Quantity
    used: Quantity
    hard: Quantity

    @property
    def key(self) -> str:
        return COUNTED + self.resource


class ExceededQuota(NamedTuple):
    """A quota that would be exceeded."""

    title: str
    shortfalls: tuple[Shortfall, ...]


def exceeded_by(quotas: Iterable[ResourceQuota], cost: Cost) -> list[ExceededQuota]:
    """Returns the quotas that a charge would exceed, by name; each is judged separately."""
    found = [ExceededQuota(each.title, _shortfalls(each, cost)) for each in quotas]
    return sorted([each for each in found if each.shortfalls])


def _shortfalls(quota: ResourceQuota, cost: Cost) -> tuple[Shortfall, ...]:
    return tuple([each for each in _compared(quota, cost) if each.used.nanos + each.asked.nanos > each.hard.nanos])


def _compared(quota: ResourceQuota, cost: Cost) -> Iterator[Shortfall]:
    enforced = quota.enforced
    for resource, asked in sorted(cost.items()):
        hard = enforced.get(COUNTED + resource)
        if hard is not None and asked.nanos > 0:
            used = Quantity.parse(quota.used[COUNTED + resource])
            yield Shortfall(resource, asked, used, Quantity.parse(hard))
