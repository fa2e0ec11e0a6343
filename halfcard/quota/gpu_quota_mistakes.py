"""Finds what a GpuQuota or ClusterGpuQuota says in vain: fields that nothing reads, and amounts that allow nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from msgspec import inspect

from ..patches import field_path, from_field_path, value_at
from ..problems import UNREADABLE, Problem
from .budgets import UnreadableBudget, read_budget
from .gpu_quota import Hard, Spec

_SPEC: Final = inspect.type_info(Spec)


def gpu_quota_mistakes(obj: Mapping[str, Any]) -> list[Problem]:
    spec = obj.get("spec")
    found = list(_fields(spec, _SPEC, ("spec",)))
    read = read_budget({**obj, "metadata": {"name": "", "uid": ""}})
    if isinstance(read, UnreadableBudget):
        found.append(_unreadable(read.why, obj))
    return found


def _unreadable(why: str, obj: Mapping[str, Any]) -> Problem:
    what, _, place = why.partition(" - at ")
    where = place.strip("`$.") or "spec"
    got = value_at(obj, from_field_path(where))
    return UNREADABLE.broken(where, got, f"{what.replace('`', '')}; docs/quota.md shows how to write it")


def _fields(value: Any, kind: inspect.Type, where: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yields the members that a quota does not have, and negative amounts."""
    match kind, value:
        case inspect.UnionType(), _:
            for each in kind.types:
                yield from _fields(value, each, where)
        case inspect.StructType(), dict():
            known = {each.encode_name: each.type for each in kind.fields}
            for key, member in value.items():
                if key in known:
                    yield from _negative(member, (*where, key)) if kind.cls is Hard else ()
                    yield from _fields(member, known[key], (*where, key))
                else:
                    yield UNREADABLE.broken(field_path((*where, key)), member, _instead(key, list(known)))
        case inspect.DictType(), dict():
            for key, member in value.items():
                yield from _fields(member, kind.value_type, (*where, key))


def _instead(key: str, known: list[str]) -> str:
    close = get_close_matches(key, known, n=1)
    return f"write {close[0]}" if close else f"remove it; a quota has {', '.join(known)} here"


def _negative(amount: Any, where: tuple[str | int, ...]) -> Iterator[Problem]:
    if str(amount).startswith("-"):
        yield UNREADABLE.broken(field_path(where), amount, "write 0 to allow nothing, or an amount above 0")
