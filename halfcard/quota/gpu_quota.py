"""GpuQuota and ClusterGpuQuota objects as they are written, and amounts as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from ..claims import CARDS, CORES, MEMORY, SHARES
from ..problems import printable
from ..quantity import NANOS, InvalidQuantity, Quantity
from .ledger import Amounts

_MIB: Final = 2**20
_REASON_CHARS: Final = 200

Labels = Mapping[str, str]


class Hard(msgspec.Struct, frozen=True):
    """Limits; an amount that is missing is not limited."""

    cores: int | None = None
    memory: str | int | None = None
    cards: int | None = None
    shares: int | None = None

    def amounts(self) -> Amounts:
        written = {CORES: self.cores, MEMORY: _mib(self.memory), CARDS: self.cards, SHARES: self.shares}
        return {key: amount for key, amount in written.items() if amount is not None}


class PerLabel(msgspec.Struct, frozen=True):
    key: str
    hard: Hard


class LabelRequirement(msgspec.Struct, frozen=True):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None

    def holds(self, labels: Labels) -> bool:
        value, values = labels.get(self.key), self.values or ()
        match self.operator:
            case "In":
                return value in values
            case "NotIn":
                return value not in values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None


class Selector(msgspec.Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None

    def selects(self, labels: Labels) -> bool:
        """Returns whether the selector matches; an empty one matches everything, as in all of Kubernetes."""
        equal = all(labels.get(key) == value for key, value in (self.match_labels or {}).items())
        return equal and all(each.holds(labels) for each in self.match_expressions or ())


class Namespaces(msgspec.Struct, frozen=True):
    names: tuple[str, ...] | None = None
    selector: Selector | None = None

    def cover(self, namespace: str, labels: Labels) -> bool:
        return namespace in (self.names or ()) or (self.selector is not None and self.selector.selects(labels))


class Borrowing(msgspec.Struct, frozen=True, rename="camel"):
    """Limits of lending and borrowing; an amount that is missing is not limited."""

    cohort: str
    borrowing_limit: Hard = Hard()
    lending_limit: Hard = Hard()


class Exemption(msgspec.Struct, frozen=True):
    """A period in which a quota limits nothing; everything is still counted."""

    until: Annotated[datetime, msgspec.Meta(tz=True)]
    reason: str

    def is_active(self, now: datetime) -> bool:
        return now < self.until

    def __str__(self) -> str:
        return f"until {self.until:%Y-%m-%dT%H:%M:%SZ}: {printable(self.reason, _REASON_CHARS)}"


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    hard: Hard = Hard()
    by_model: dict[str, Hard] = {}
    by_pool: dict[str, Hard] = {}
    per_label: PerLabel | None = None
    on_exceeded: Literal["Deny", "Gate"] = "Deny"
    borrowing: Borrowing | None = None
    namespaces: Namespaces = Namespaces()
    as_default: bool = False
    exemption: Exemption | None = None


class QuotaMetadata(msgspec.Struct, frozen=True):
    name: str
    uid: str
    namespace: str = ""


class GpuQuota(msgspec.Struct, frozen=True):
    metadata: QuotaMetadata
    spec: Spec = Spec()


def read_amounts(written: Mapping[str, str]) -> Amounts:
    """Reads amounts as people write them. Raises ValueError for an invalid amount, or an unknown name."""
    found = {key: _mib(text) if key == MEMORY else int(text) for key, text in written.items()}
    if strange := found.keys() - {CORES, MEMORY, CARDS, SHARES}:
        raise ValueError(f"unknown {', '.join(sorted(strange))}")
    return {key: amount for key, amount in found.items() if amount is not None}


def _mib(amount: str | int | None) -> int | None:
    """Rounded down: a budget of half a MiB allows none."""
    if amount is None:
        return None
    try:
        return Quantity.parse(str(amount)).nanos // (NANOS * _MIB)
    except InvalidQuantity:
        raise ValueError(f"spec.hard.memory: got {amount!r}; write an amount such as 64Gi") from None
