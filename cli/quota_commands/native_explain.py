"""The part of `halfcard quota explain` about Kubernetes' own ResourceQuotas."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from halfcard.claims import Unit
from halfcard.quantity import Quantity
from halfcard.quota.ledger import Amounts
from halfcard.quota.native_messages import drifted, exceeded, in_words_of, never_counted
from halfcard.quota.native_quota import COUNTED, ResourceQuota, exceeded_by
from halfcard.quota.native_usage import Drift
from kube.api.calls import ApiCalls
from kube.quota.native_drift import Found, lasting, look
from kube.quota.native_quota_source import ReadError, quotas_in

from ..output.terminal import Colour, Screen

_LOOK_AGAIN_S: Final = 2.0
"""Kubernetes releases a pod's charge a moment after the pod has ended."""

_UNKNOWN: Final = "-"
_NONE: Final[Found] = {}


class NativeQuotaAnswer(NamedTuple):
    """The ResourceQuotas of one namespace that count GPUs.

    Attributes:
        drift: the `used` amounts that differ from the sum of their pods.
        problems: what could not be read, a sentence each.
    """

    quotas: Sequence[ResourceQuota] = ()
    drift: Found = _NONE
    problems: tuple[str, ...] = ()


async def ask(calls: ApiCalls, namespace: str, resources: frozenset[str]) -> NativeQuotaAnswer:
    """Reads the ResourceQuotas of a namespace; raises NoAnswerError."""
    try:
        found = [each for each in await quotas_in(calls, namespace) if each.names(resources)]
    except ReadError as error:
        return NativeQuotaAnswer(problems=(f"its ResourceQuotas cannot be read: {error}",))
    try:
        drift = await _drift(calls, namespace, resources) if found else {}
    except ReadError as error:
        return NativeQuotaAnswer(found, problems=(f"whether its ResourceQuotas count correctly is unknown: {error}",))
    return NativeQuotaAnswer(found, drift)


async def _drift(calls: ApiCalls, namespace: str, resources: frozenset[str]) -> Found:
    first = await look(calls, namespace, resources, time.time())
    if not first:
        return first
    await asyncio.sleep(_LOOK_AGAIN_S)
    return lasting(first, await look(calls, namespace, resources, time.time()))


def refusals(native: NativeQuotaAnswer, charge: Amounts, table: Mapping[str, Unit]) -> list[str]:
    """Returns the refusals of a pod with this charge, by quotas that count all of it."""
    everybody = [each for each in native.quotas if not each.scopes]
    return [exceeded(each, table) for each in exceeded_by(everybody, in_words_of(charge, table))]


def as_json(native: NativeQuotaAnswer, resources: frozenset[str]) -> list[dict[str, Any]]:
    return [_as_json(each, native.drift.get(each.title, ()), resources) for each in native.quotas]


def _as_json(quota: ResourceQuota, drift: Sequence[Drift], resources: frozenset[str]) -> dict[str, Any]:
    hard = _hard(quota, resources)
    return {
        "name": quota.title,
        "hard": hard,
        "used": {key: quota.used[key] for key in hard if key in quota.used},
        "free": {key: _free(quota, key) for key in hard if key in quota.enforced},
        "scopes": [str(each) for each in quota.scopes],
        "uncounted": quota.uncounted(resources),
        "drift": [each._asdict() for each in drift],
    }


def show(screen: Screen, native: NativeQuotaAnswer, resources: frozenset[str]) -> None:
    for each in native.quotas:
        screen.line(screen.paint(f"ResourceQuota {each.title}", Colour.BOLD))
        rows = [
            (key, each.used.get(key, _UNKNOWN), hard, _free(each, key)) for key, hard in _hard(each, resources).items()
        ]
        if rows:
            screen.table([("", "USED", "ALLOWED", "FREE"), *rows], right=(1, 2, 3), indent="  ")
        for remark in _remarks(each, native.drift.get(each.title, ()), resources):
            screen.wrapped(remark, indent="  ", hanging="  ", colour=Colour.YELLOW)
        screen.line()


def _hard(quota: ResourceQuota, resources: frozenset[str]) -> Mapping[str, str]:
    """Returns the limits of the keys that count."""
    ours = {COUNTED + each for each in resources}
    return {key: text for key, text in sorted(quota.hard.items()) if key in ours}


def _free(quota: ResourceQuota, key: str) -> str:
    if key not in quota.enforced:
        return _UNKNOWN
    return str(Quantity(max(Quantity.parse(quota.enforced[key]).nanos - Quantity.parse(quota.used[key]).nanos, 0)))


def _remarks(quota: ResourceQuota, drift: Sequence[Drift], resources: frozenset[str]) -> Iterator[str]:
    if quota.scopes:
        yield f"only for pods with the scopes {', '.join(map(str, quota.scopes))}"
    if remark := never_counted(quota, resources):
        yield remark
    if _hard(quota, resources).keys() - quota.enforced.keys():
        yield "Kubernetes has not counted its usage yet"
    if drift:
        yield drifted(drift)
