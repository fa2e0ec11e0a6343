"""Decides which GpuQuotaUsage objects are out of date, and in which order they are written. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from .usage_objects import UsageKey

_REST_S: Final = 30.0
"""How long an object may be out of date where only other namespaces' usage changed."""


class UsageVersion(NamedTuple):
    """The inputs of the content of one object; `own` is what its namespace changed itself."""

    own: tuple[int, int, bool]
    ledger: str = ""


class Written(NamedTuple):
    version: UsageVersion
    at_s: float


def due(versions: Mapping[UsageKey, UsageVersion], written: Mapping[UsageKey, Written], now_s: float) -> list[UsageKey]:
    """Returns the objects to write next: those with own changes, then the oldest of the others that have rested."""
    urgent = [key for key, version in versions.items() if key not in written or written[key].version.own != version.own]
    outdated = [
        (written[key].at_s, key)
        for key, version in versions.items()
        if key in written and written[key].version.own == version.own and written[key].version != version
    ]
    rested = sorted(each for each in outdated if now_s - each[0] >= _REST_S)
    return [*urgent, *[key for _, key in rested]]
