"""Checks that every native ResourceQuota for GPUs counts.

The rules are those of the webhook: whatever it would change in a stored quota is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

import msgspec

from halfcard.problems import printable
from halfcard.quota.native_quota import COUNTED, UNCOUNTED, ResourceQuota, resource_of
from halfcard.quota.requests_twin import unreadable

from ..finding import BROKEN, WARNING, Check, FoundFault
from ..snapshot import Snapshot

_MIG: Final = "/mig-"
_KEY_CHARS: Final = 120


def _read(snapshot: Snapshot) -> Iterator[tuple[str, ResourceQuota]]:
    for obj in snapshot.quotas:
        quota = msgspec.convert(obj, ResourceQuota)
        yield f"ResourceQuota {quota.title}", quota


def _uncounted(snapshot: Snapshot) -> Iterator[FoundFault]:
    words = snapshot.settings.enabled_dialects()
    for where, quota in _read(snapshot):
        if idle := quota.uncounted(words.resources):
            fix = "add the key that counts; if the webhook is registered, any update adds it"
            yield FoundFault(where, ", ".join(idle), fix, f"halfcard quota repair {quota.meta.namespace}")


def _unknown(snapshot: Snapshot) -> Iterator[FoundFault]:
    words = snapshot.settings.enabled_dialects().resources
    domains = {resource.partition("/")[0] for resource in words}
    offered = {resource for node in snapshot.nodes for resource in node.offers}
    for where, quota in _read(snapshot):
        for key in quota.hard:
            resource = resource_of(key)
            known = resource in words | offered or _MIG in resource or resource.partition("/")[0] not in domains
            if not known:
                near = get_close_matches(resource, sorted(words), n=1)
                fix = f"write {key.removesuffix(resource)}{near[0]}" if near else "remove it, or correct its spelling"
                yield FoundFault(f"{where}, spec.hard", printable(key, _KEY_CHARS), fix)


def _meaningless(snapshot: Snapshot) -> Iterator[FoundFault]:
    words = snapshot.settings.enabled_dialects()
    for where, quota in _read(snapshot):
        for problem in unreadable(quota, words):
            yield FoundFault(f"{where}, {problem.where}", problem.got or "", problem.fix)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "quota-uncounted",
        BROKEN,
        f"a quota of an extended resource counts by `{COUNTED}`, and by no other key",
        f"The API server accepts `{UNCOUNTED[0]}` and a bare name but counts neither, so the quota limits nothing. The"
        " webhook adds the key that counts when a quota is written; older quotas are not changed.",
        _uncounted,
    ),
    Check(
        "quota-unknown-key",
        WARNING,
        "a key in the domain of a GPU resource names a known resource",
        "The API server accepts any name, also of a resource that no pod requests.",
        _unknown,
    ),
    Check(
        "quota-amount",
        WARNING,
        "a quota's amount is in the resource's own unit",
        "Otherwise Kubernetes counts it in another unit.",
        _meaningless,
    ),
)
