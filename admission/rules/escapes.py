"""The rules against a pod taking more than its claims. They apply to every pod: the worst escape requests no GPU.

Those about variables are in `variables`; the table of all ways is `halfcard.ways_to_cards`.
"""

from __future__ import annotations

from collections.abc import Iterator

from halfcard import names
from halfcard.pod.owned_annotations import is_owned
from halfcard.problems import (
    DEVICE_LIST,
    ENV_LOOSENS,
    OWNED,
    PRIVILEGED_SHARE,
    PRIVILEGED_WHOLE,
    Problem,
)
from halfcard.ways_to_cards import Effect, mount_row, names_devices

from .core_limit import default_limit, is_ours, mark
from .subject import Subject


def records_are_not_forged(subject: Subject) -> Iterator[Problem]:
    if subject.context.is_trusted:
        return
    for where, now, before in subject.metadata():
        for key in filter(is_owned, {**now, **before} if before else now):
            if now.get(key) != before.get(key) and not _is_our_default(subject, key):
                got, fix = now.get(key), "put it back" if key in before else "remove it"
                yield OWNED.broken(f'{where}["{key}"]', got, fix)


def _is_our_default(subject: Subject, key: str) -> bool:
    """Returns whether the key marks the default core limit that Halfcard itself would write: users may write it."""
    if key != names.CORE_LIMIT_DEFAULTED:
        return False
    marked = subject.pod.annotations.get(key)
    default = default_limit(subject.asked)
    return marked is None or (is_ours(subject.pod, marked) and default is not None and marked == mark(*default))


def devices_are_not_listed(subject: Subject) -> Iterator[Problem]:
    for key, value in subject.pod.annotations.items():
        if names_devices(key):
            yield DEVICE_LIST.broken(f'metadata.annotations["{key}"]', value, "remove it, and ask for GPU in resources")


def mounts_are_allowed(subject: Subject) -> Iterator[Problem]:
    for place, claim in subject.containers:
        for number, mount in enumerate(place.container.volume_mounts or ()):
            if (row := mount_row(mount.mount_path)) is None:
                continue
            where = f"{place.where}.volumeMounts[{number}].mountPath"
            if row.effect is Effect.CHOOSES:
                yield DEVICE_LIST.broken(where, mount.mount_path, "remove it, and ask for GPU in resources")
            elif claim is not None and claim.is_share:
                yield ENV_LOOSENS.broken(where, mount.mount_path, "use another path")


def privileges_are_allowed(subject: Subject) -> Iterator[Problem]:
    if not subject.claims:
        return
    shared = PRIVILEGED_SHARE, "remove it, or ask for whole cards"
    rule, fix = shared if subject.has_share else (PRIVILEGED_WHOLE, "remove it")
    spec = subject.pod.spec
    if spec is not None and spec.host_pid:
        yield rule.broken("spec.hostPID", "true", fix)
    for place, _ in subject.containers:
        context = place.container.security_context
        if context is not None and context.privileged:
            where = f"{place.where}.securityContext.privileged"
            yield rule.broken(where, "true", fix)
