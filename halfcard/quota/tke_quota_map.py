"""Reads the ConfigMap in which TKE's quota admission allows cards by model and pool, as quotas of ours.

Its text is JSON: {"<namespace>": {"quota": {"M40": 8, "P100": 2}, "pool": ["public"]}, …}. A model that is missing has
no cards; without pools every pool is allowed. Invariant: one invalid namespace affects only itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from .. import names
from ..claims import WHOLE_CARD
from ..problems import printable
from .budgets import OTHERS, Budget, read_budget

_NOTHING: Final = {"cards": 0, "shares": 0}
_MOST_CARDS: Final = 10_000_000
_WHY_CHARS: Final = 200

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

Spec = Mapping[str, Any]


class _Allowed(msgspec.Struct, forbid_unknown_fields=True):
    quota: dict[str, int] | None = None
    pool: list[str] | None = None


class GpuQuotaMap(NamedTuple):
    """The readable entries, and a sentence for each unreadable one."""

    specs: Mapping[str, Spec]
    unreadable: tuple[str, ...]


def read_map(text: str) -> GpuQuotaMap | None:
    """Returns the equivalent GpuQuota spec of each namespace; None for text that is no JSON object."""
    try:
        written = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return None
    specs, odd = {}, []
    for namespace, raw in written.items():
        try:
            specs[_checked(namespace)] = _spec(msgspec.json.decode(raw, type=_Allowed))
        except (msgspec.ValidationError, ValueError) as error:
            odd.append(_sentence(namespace, str(error)))
    return GpuQuotaMap(specs, tuple(odd))


def _checked(namespace: str) -> str:
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError("no namespace can have this name")
    return namespace


def _spec(allowed: _Allowed) -> Spec:
    models = {model: {"cores": _cores(model, cards)} for model, cards in (allowed.quota or {}).items()}
    spec = {"byModel": {**models, OTHERS: _NOTHING}}
    if not allowed.pool:
        return spec
    return {**spec, "byPool": {**{pool: {} for pool in allowed.pool}, OTHERS: _NOTHING}}


def _cores(model: str, cards: int) -> int:
    if not 0 <= cards <= _MOST_CARDS:
        raise ValueError(f"quota of {model!r}: got {cards}; so many cards are not below 0 and not above {_MOST_CARDS}")
    return cards * WHOLE_CARD


def _sentence(namespace: str, why: str) -> str:
    where = f"{names.KUBE_SYSTEM}/{names.GPU_QUOTA_MAP}, key {names.GPU_QUOTA_KEY}"
    return printable(f'{where}: "{namespace}" limits nothing: {why}', _WHY_CHARS)


UNREADABLE: Final = (
    f"{names.KUBE_SYSTEM}/{names.GPU_QUOTA_MAP}: its key {names.GPU_QUOTA_KEY} holds no JSON object of namespaces; "
    f'what it allowed before still counts; write it like {{"team-a": {{"quota": {{"T4": 8}}, "pool": ["public"]}}}}'
)


def budgets_of(found: GpuQuotaMap, uid: str) -> tuple[Budget, ...]:
    """`uid` is the ConfigMap's."""
    read = (read_budget(_object(namespace, spec, f"{uid}/{namespace}")) for namespace, spec in found.specs.items())
    return tuple([each._replace(is_mapped=True) for each in read if isinstance(each, Budget)])


def _object(namespace: str, spec: Spec, uid: str) -> Mapping[str, Any]:
    return {"metadata": {"namespace": namespace, "name": names.GPU_QUOTA_MAP, "uid": uid}, "spec": spec}
