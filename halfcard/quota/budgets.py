"""Turns quota objects into budgets: whom they cover, what they allow, and what they count of a pod.

Invariant: one invalid object affects only itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from math import inf
from operator import eq
from typing import Any, Final, NamedTuple

import msgspec

from .. import names
from ..claims import CARDS, CORES, MEMORY, SHARES, WHOLE_CARD
from ..problems import printable
from .amount_key import AmountKey
from .gpu_quota import Borrowing, Exemption, GpuQuota, Hard, Labels, Namespaces
from .ledger import Amounts
from .lending import Terms
from .pod_location import PodLocation

_WHY_CHARS: Final = 200
_OWN, _SHARED = f"{names.GPU_QUOTA.lower()}.", f"{names.CLUSTER_GPU_QUOTA.lower()}."
_MAPPED: Final = f"{names.GPU_QUOTA_MAP}map."
_DEFAULT: Final = f"default{_OWN}"
LEDGER_PREFIXES: Final = (_OWN, _SHARED, _MAPPED, _DEFAULT)

_OF_A_CARD: Final[Mapping[str, int]] = {CARDS: 1, SHARES: 4, CORES: WHOLE_CARD, MEMORY: 16 * 1024}

_OF_ONE: Final = "/"
"""Between the uid of an object and the namespace, where it is a budget for each of several."""

OTHERS: Final = "*"
"""Every model, or every pool, that its quota does not name."""


class Budget(NamedTuple):
    """The content of one quota object.

    Attributes:
        namespace: the only namespace it covers; empty for a ClusterGpuQuota, except for a default in one namespace.
        hard: what is allowed, by the keys of a ledger.
        label: a pod label; each of its values has its own amounts. Empty for none.
        models: substrings of model names; what is allowed on the cards of each is in `hard`.
        pools: node pools, likewise.
        gates: pods wait in order until there is room, and are not refused.
        terms: the conditions of lending and borrowing, if it does.
        is_default: it covers namespaces without a quota of their own, each of them separately.
        exemption: a period in which the budget limits nothing.
        is_mapped: it is an entry of TKE's quota ConfigMap, not an object.
    """

    namespace: str
    name: str
    uid: str
    hard: Amounts
    label: str
    namespaces: Namespaces
    models: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    is_mapped: bool = False
    gates: bool = False
    terms: Terms | None = None
    is_default: bool = False
    exemption: Exemption | None = None

    def is_exempt(self, now: datetime) -> bool:
        return self.exemption is not None and self.exemption.is_active(now)

    def enforced(self, now: datetime) -> Amounts:
        """Returns what is allowed at this moment; a key that is missing is not limited."""
        return {} if self.is_exempt(now) else self.hard

    def for_namespace(self, namespace: str) -> Budget:
        """Returns a default as the budget of one namespace."""
        return self._replace(namespace=namespace, uid=f"{self.uid}{_OF_ONE}{namespace}")

    @property
    def title(self) -> str:
        """The name of the quota for messages."""
        if self.is_mapped:
            return f"{names.KUBE_SYSTEM}/{self.name} for {self.namespace}"
        if self.is_default:
            return f"{self.name} for {self.namespace}" if self.namespace else self.name
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def kind(self) -> str:
        if self.is_mapped:
            return "ConfigMap"
        return names.CLUSTER_GPU_QUOTA if self.is_default or not self.namespace else names.GPU_QUOTA

    @property
    def cards(self) -> float:
        """The number of ordinary cards that it allows, roughly; infinite where it limits no total."""
        return min((hard / _OF_A_CARD[key] for key, hard in self.hard.items() if key in _OF_A_CARD), default=inf)

    @property
    def reference(self) -> dict[str, str]:
        """The reference to its object."""
        named = {"kind": self.kind, "name": self.name}
        uid = self.uid.partition(_OF_ONE)[0]
        if self.is_mapped:
            return {"apiVersion": "v1", **named, "namespace": names.KUBE_SYSTEM, "uid": uid}
        placed = {"namespace": self.namespace} if self.kind == names.GPU_QUOTA else {}
        return {"apiVersion": names.QUOTA_API.removeprefix("/apis/"), **named, **placed, "uid": uid}

    @property
    def ledger(self) -> str:
        """The name of the object that stores its ledger."""
        if self.is_mapped:
            return f"{_MAPPED}{self.namespace}"
        if self.is_default:
            return f"{_DEFAULT}{self.namespace}.{self.name}"
        return f"{_OWN}{self.namespace}.{self.name}" if self.namespace else f"{_SHARED}{self.name}"

    def is_same(self, other: Budget) -> bool:
        """Returns whether both are the same quota, whose spec may have changed."""
        return (self.ledger, self.uid) == (other.ledger, other.uid)

    def covers(self, namespace: str, labels: Labels) -> bool:
        """Returns whether the budget covers a namespace with these labels."""
        return namespace == self.namespace if self.namespace else self.namespaces.cover(namespace, labels)

    def counted(self, charge: Amounts, labels: Labels) -> Amounts:
        """Returns what the budget counts of a pod with these labels, by ledger key, including what it does not limit.

        Pods without the label share the amount of one value.
        """
        if not self.label:
            return charge
        value = labels.get(self.label, "")
        return {**charge, **{str(AmountKey(key, self.label, value)): amount for key, amount in charge.items()}}

    @property
    def depends_on_location(self) -> bool:
        """Whether it counts models or pools, so that a charge depends on the node."""
        return bool(self.models or self.pools)

    def counted_at(self, place: PodLocation) -> Amounts:
        """Returns what the budget counts in addition once the pod has a node."""
        found: Counter[str] = Counter()
        for model, charge in place.by_model.items():
            for named in _naming(self.models, partial(_is_part, of=model)):
                found.update({_of_model(key, named): amount for key, amount in charge.items()})
        for named in _naming(self.pools, partial(eq, place.pool)):
            found.update({_of_pool(key, named): amount for key, amount in place.total.items()})
        return found


def _naming(named: tuple[str, ...], means_it: Callable[[str], bool]) -> list[str]:
    """Returns the longest matching name: with A100 and A100-SXM4-80GB, a card counts in one of them only."""
    meaning = sorted((each for each in named if each != OTHERS and means_it(each)), key=len)
    return meaning[-1:] or [each for each in named if each == OTHERS]


def _is_part(name: str, of: str) -> bool:
    """Drivers write NVIDIA A100-SXM4-80GB, and labels NVIDIA-A100-SXM4-80GB."""
    return _plain(name) in _plain(of)


def _plain(model: str) -> str:
    return model.lower().replace(" ", "-")


def _of_model(key: str, model: str) -> str:
    return str(AmountKey(key, model=model))


def _of_pool(key: str, pool: str) -> str:
    return str(AmountKey(key, pool=pool))


def deleted_budget(ledger: str) -> Budget:
    """Stands in for a deleted quota whose ledger still exists: it allows nothing and covers no namespace."""
    if ledger.startswith(_MAPPED):
        return Budget(ledger.removeprefix(_MAPPED), names.GPU_QUOTA_MAP, "", {}, "", Namespaces(), is_mapped=True)
    if ledger.startswith(_DEFAULT):
        namespace, _, name = ledger.removeprefix(_DEFAULT).partition(".")
        return Budget(namespace, name, "", {}, "", Namespaces(), is_default=True)
    namespace, _, name = ledger.removeprefix(_OWN).partition(".") if ledger.startswith(_OWN) else ("", "", "")
    return Budget(namespace, name or ledger.removeprefix(_SHARED), "", {}, "", Namespaces())


class UnreadableBudget(NamedTuple):
    """An object that limits nothing, and the sentence that says why."""

    title: str
    why: str

    def __str__(self) -> str:
        return f"{self.title} limits nothing: {self.why}"


def read_budget(obj: Mapping[str, Any]) -> Budget | UnreadableBudget:
    try:
        found = msgspec.convert(obj, GpuQuota)
        return _budget(found)
    except (msgspec.ValidationError, ValueError) as error:
        metadata = obj.get("metadata") or {}
        title = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
        return UnreadableBudget(printable(title, _WHY_CHARS), printable(str(error), _WHY_CHARS))


def _budget(found: GpuQuota) -> Budget:
    meta, spec = found.metadata, found.spec
    hard = dict(spec.hard.amounts())
    label = ""
    if spec.per_label is not None:
        label = spec.per_label.key
        hard |= {str(AmountKey(key, label)): amount for key, amount in spec.per_label.hard.amounts().items()}
    hard |= dict(_places(spec.by_model, _of_model)) | dict(_places(spec.by_pool, _of_pool))
    places = tuple(spec.by_model), tuple(spec.by_pool)
    gates = spec.on_exceeded == "Gate"
    terms = _terms(spec.borrowing) if gates and spec.borrowing else None
    whose = meta.namespace, meta.name, meta.uid, hard, label, spec.namespaces
    return Budget(*whose, *places, gates=gates, terms=terms, is_default=spec.as_default, exemption=spec.exemption)


def _terms(written: Borrowing) -> Terms:
    return Terms(written.cohort, written.borrowing_limit.amounts(), written.lending_limit.amounts())


def _places(allowed: Mapping[str, Hard], key_of: Callable[[str, str], str]) -> Iterator[tuple[str, int]]:
    for named, hard in allowed.items():
        for key, amount in hard.amounts().items():
            yield key_of(key, named), amount


def covering(budgets: Iterable[Budget], namespace: str, labels: Labels) -> tuple[Budget, ...]:
    """Returns the budgets of a namespace in the order in which ledgers are written, so that two pods never deadlock:
    where few pods fit, the others wait in the first ledger, and hold nothing in the larger ones.
    """
    found = [each for each in budgets if each.covers(namespace, labels)]
    has_own = any(each.namespace for each in found)
    chosen = [
        each.for_namespace(namespace) if each.is_default else each
        for each in found
        if not each.is_default or not has_own
    ]
    return tuple(sorted(chosen, key=lambda each: (each.cards, each.ledger)))


def expand_defaults(budgets: Sequence[Budget], namespaces: Mapping[str, Labels]) -> list[Budget]:
    """Replaces each default by one budget for every namespace that has no quota of its own."""
    own = {each.namespace for each in budgets}
    others = {name: labels for name, labels in namespaces.items() if name not in own}
    defaults = [each for each in budgets if each.is_default]
    of_one = [
        each.for_namespace(name) for each in defaults for name, labels in others.items() if each.covers(name, labels)
    ]
    return [each for each in budgets if not each.is_default] + of_one
