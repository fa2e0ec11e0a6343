"""Checks that the CRDs are those of this version, and that quotas are counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from halfcard import names
from halfcard.problems import printable
from halfcard.quota.budgets import UnreadableBudget, read_budget

from ..causes import NOT_WORKING
from ..finding import BROKEN, WARNING, Check, FoundFault
from ..scheduler.scheduler_checks import not_led
from ..snapshot import ABSENT, Object, Snapshot

VERSION: Final = names.QUOTA_API.rpartition("/")[2]
CRDS: Final = {
    f"{plural}.{names.OWN_DOMAIN}": kind
    for plural, kind in (
        (names.GPU_QUOTAS, names.GPU_QUOTA),
        (names.CLUSTER_GPU_QUOTAS, names.CLUSTER_GPU_QUOTA),
        (names.GPU_QUOTA_USAGES, names.GPU_QUOTA_USAGE),
    )
}
"""The CRDs and their kinds."""

_OWN: Final = frozenset({"borrowing", "exemption", "hard", "byModel", "byPool", "onExceeded", "perLabel"})
SPEC: Final = {names.GPU_QUOTA: _OWN, names.CLUSTER_GPU_QUOTA: _OWN | {"namespaces", "asDefault"}}
"""Fields that this version reads; the API server drops fields that the CRD does not have."""

_WORDS_CHARS: Final = 240
_APPLY: Final = "apply the CRDs of this version; existing quotas stay"
_CREATE: Final = "apply the CRDs again, then create each quota again: pods that run are counted again"
_KINDS: Final = "kubectl apply -f deploy/crds"
_LOG: Final = f"kubectl -n {names.NAMESPACE} logs -l {names.NAME_LABEL}={names.QUOTA_SERVICE} --prefix"


def _crd_missing(snapshot: Snapshot) -> Iterator[FoundFault]:
    for name, found in snapshot.crds.items():
        if found == ABSENT:
            fix = _CREATE if CRDS[name] in SPEC else _APPLY
            yield FoundFault(f"CustomResourceDefinition {name}", _lost(CRDS[name]), fix, _KINDS)


def _lost(kind: str) -> str:
    if kind in SPEC:
        return "it does not exist: with it, all its quotas were deleted"
    return "it does not exist: members of a namespace cannot read what it uses of shared and default quotas"


def _crd_old(snapshot: Snapshot) -> Iterator[FoundFault]:
    for name, found in snapshot.crds.items():
        if found and (lacking := sorted(_lacking(found, CRDS[name]))):
            yield FoundFault(f"CustomResourceDefinition {name}", f"it lacks {', '.join(lacking)}", _APPLY, _KINDS)


def _lacking(crd: Object, kind: str) -> set[str]:
    versions = {each["name"]: each for each in crd["spec"]["versions"] if each.get("served")}
    if VERSION not in versions:
        return {f"version {VERSION}"}
    schema: Mapping[str, Any] = versions[VERSION].get("schema", {}).get("openAPIV3Schema", {})
    spec = schema.get("properties", {}).get("spec", {})
    return {f"spec.{field}" for field in SPEC.get(kind, frozenset()) - spec.get("properties", {}).keys()}


# --- objects ---------------------------------------------------------------------------------------------------------


def _where(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{obj['kind']} {'/'.join(filter(None, (metadata.get('namespace'), metadata['name'])))}"


def _conditions(obj: Object) -> dict[str, Mapping[str, str]]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return {each["type"]: each for each in found}


def _odd(snapshot: Snapshot) -> Iterator[FoundFault]:
    for obj in snapshot.budgets:
        found = read_budget(obj)
        if isinstance(found, UnreadableBudget):
            yield FoundFault(_where(obj), found.why, "correct it: until then it limits nothing")


def _without_leader(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks that a leader counts, where there is a quota to count."""
    if snapshot.budgets:
        yield from not_led(
            snapshot, names.QUOTA_SERVICE, "start the quota service, or read in its log why no replica leads"
        )


def _broken_ledger(snapshot: Snapshot) -> Iterator[FoundFault]:
    for ledger, trouble in snapshot.ledgers.items():
        if trouble:
            command = f"kubectl -n {names.NAMESPACE} delete configmap {ledger}"
            yield FoundFault(
                f"ConfigMap {names.NAMESPACE}/{ledger}", trouble, "delete it: all pods are then counted", command
            )


def _not_ready(snapshot: Snapshot) -> Iterator[FoundFault]:
    for obj in snapshot.budgets:
        ready = _conditions(obj).get("Ready", {})
        if ready.get("status") != "True":
            message = printable(ready.get("message", "it is not counted yet"), _WORDS_CHARS)
            yield FoundFault(_where(obj), message, "the quota service's log says why", _LOG, names.QUOTA_SERVICE)


def _exceeded(snapshot: Snapshot) -> Iterator[FoundFault]:
    for obj in snapshot.budgets:
        exceeded = _conditions(obj).get("Exceeded", {})
        if exceeded.get("status") == "True":
            fix = "delete pods, or raise the quota; until then no new pod is admitted"
            yield FoundFault(_where(obj), printable(exceeded.get("message", ""), _WORDS_CHARS), fix)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "crd-missing",
        BROKEN,
        f"the CRDs of {names.GPU_QUOTA}, {names.CLUSTER_GPU_QUOTA} and {names.GPU_QUOTA_USAGE} are installed",
        "Without those of quotas all quotas are gone, and nothing is limited.",
        _crd_missing,
    ),
    Check(
        "crd-old",
        BROKEN,
        "the CRDs have every field that this version reads",
        "The API server drops fields that they do not have, and the quota allows more than was written.",
        _crd_old,
    ),
    Check(
        "budget-unreadable",
        BROKEN,
        "a quota can be read",
        "An unreadable quota limits nothing.",
        _odd,
    ),
    Check(
        "quota-service-not-led",
        BROKEN,
        "one replica of the quota service holds the Lease and renews it, where there are quotas",
        "Otherwise ended pods stay counted, and new quotas admit nothing.",
        _without_leader,
        unless=(*NOT_WORKING, "clock-skew"),
    ),
    Check(
        "ledger-broken",
        BROKEN,
        "a quota's ledger can be read",
        "Otherwise the quota admits nothing.",
        _broken_ledger,
    ),
    Check(
        "budget-not-counted",
        BROKEN,
        "a quota has been counted",
        "Until then it admits nothing.",
        _not_ready,
        unless=(*NOT_WORKING, "quota-service-not-led", "ledger-broken", "budget-unreadable"),
    ),
    Check(
        "budget-exceeded",
        WARNING,
        "no more is used than a quota allows",
        "The quota was lowered below what runs, or pods bypassed the webhook.",
        _exceeded,
    ),
)
