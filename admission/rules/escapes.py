"""The rules against a pod taking more than its claims. They apply to every pod: the worst escape requests no GPU.

The tables of variables and paths are in `halfcard.names`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.claims import Claim
from halfcard.pod.owned_annotations import is_owned
from halfcard.pod.spec import EnvFrom, EnvVar
from halfcard.problems import (
    DEVICE_LIST,
    ENV_FROM,
    ENV_LOOSENS,
    ENV_WIDENS,
    HOST_PATH,
    LIBRARY_PATH,
    OWNED,
    PRIVILEGED_SHARE,
    PRIVILEGED_WHOLE,
    Problem,
)

from .core_limit import default_limit, is_ours, mark
from .subject import Subject

_WATCHED_VARIABLES: Final = (
    *names.WIDENING_ENV,
    *names.LOOSENING_ENV,
    *names.LOOSENING_ENV_PREFIXES,
    names.LIBRARY_PATH,
)
_LINKS_TO_ROOT: Final = re.compile(r"^(/proc/([0-9]+|self|thread-self)(/task/[0-9]+)?/(root|cwd))+(?=/|$)")
_DEVICE_LIST: Final = posixpath.basename(names.DEVICE_LIST_MOUNT)


def records_are_not_forged(subject: Subject) -> Iterator[Problem]:
    if subject.context.is_trusted:
        return
    for where, now, before in subject.metadata():
        for key in filter(is_owned, {**now, **before}):
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
        if key.startswith(names.CDI_PREFIX):
            yield DEVICE_LIST.broken(f'metadata.annotations["{key}"]', value, "remove it, and ask for GPU in resources")
    for place, _ in subject.containers:
        for number, mount in enumerate(place.container.volume_mounts or ()):
            if _DEVICE_LIST in mount.mount_path and _is_within(_real(mount.mount_path), names.DEVICE_LIST_MOUNT):
                where = f"{place.where}.volumeMounts[{number}].mountPath"
                yield DEVICE_LIST.broken(where, mount.mount_path, "remove it, and ask for GPU in resources")


def variables_are_allowed(subject: Subject) -> Iterator[Problem]:
    for place, claim in subject.containers:
        for number, variable in enumerate(place.container.env or ()):
            if variable.name.startswith(_WATCHED_VARIABLES):
                yield from _variable(f"{place.where}.env[{number}]", variable, claim)
        for number, source in enumerate(place.container.env_from or ()):
            yield from _source(subject, f"{place.where}.envFrom[{number}]", source, claim)


def _variable(where: str, variable: EnvVar, claim: Claim | None) -> Iterator[Problem]:
    harmless = names.WIDENING_ENV.get(variable.name)
    if harmless is not None:
        if variable.value_from or (variable.value or "") not in harmless:
            got = f"{variable.name}={'(valueFrom)' if variable.value_from else variable.value}"
            yield ENV_WIDENS.broken(where, got, "remove it, and ask for GPU in resources")
    elif claim is not None and claim.is_share:
        if _loosens(variable.name):
            yield ENV_LOOSENS.broken(where, variable.name, "remove it")
        elif variable.name == names.LIBRARY_PATH:
            yield LIBRARY_PATH.broken(where, variable.name, "remove it if the image works without it")


def _loosens(name: str) -> bool:
    return name in names.LOOSENING_ENV or name.startswith(names.LOOSENING_ENV_PREFIXES)


def _source(subject: Subject, where: str, source: EnvFrom, claim: Claim | None) -> Iterator[Problem]:
    """Judges the variables of a source where its keys are known, else the variables that its prefix could begin."""
    holds_share = claim is not None and claim.is_share
    keys = _known_keys(subject, source)
    if keys is None:
        if source.prefix and _could_begin(source.prefix, holds_share=holds_share):
            yield ENV_FROM.broken(f"{where}.prefix", source.prefix, "use another prefix")
        return
    for name in sorted(source.prefix + key for key in keys):
        if name in names.WIDENING_ENV or (holds_share and _loosens(name)):
            yield ENV_FROM.broken(where, name, "remove the key from the ConfigMap, or list the keys you need under env")


def _known_keys(subject: Subject, source: EnvFrom) -> frozenset[str] | None:
    if source.config_map_ref is None:
        return None
    return subject.context.cluster.configmap_keys.get((subject.context.namespace, source.config_map_ref.name))


def _could_begin(prefix: str, *, holds_share: bool) -> bool:
    wanted = [*names.WIDENING_ENV]
    if holds_share:
        if prefix.startswith(names.LOOSENING_ENV_PREFIXES):
            return True
        wanted += [*names.LOOSENING_ENV, *names.LOOSENING_ENV_PREFIXES]
    return any(name.startswith(prefix) for name in wanted)


def host_paths_are_allowed(subject: Subject) -> Iterator[Problem]:
    spec = subject.pod.spec
    for number, volume in enumerate((spec and spec.volumes) or ()):
        if volume.host_path is not None and leads_to_gpu(volume.host_path.path):
            where = f"spec.volumes[{number}].hostPath.path"
            fix = "remove it or mount less, and ask for GPU in resources"
            yield HOST_PATH.broken(where, volume.host_path.path, fix)


def leads_to_gpu(path: str) -> bool:
    """Returns whether the path is protected, or is below or above a protected path."""
    real = _real(path)
    return real.startswith(names.DEVICE_FILES) or any(
        _is_within(real, protected) or _is_within(protected, real) for protected in names.PROTECTED_PATHS
    )


def _real(path: str) -> str:
    """Returns the path that is meant: /var/run is /run, // is /, and /proc has links to the root of the host."""
    plain = _LINKS_TO_ROOT.sub("", posixpath.normpath("/" + path.lstrip("/"))) or "/"
    return plain.removeprefix("/var") if _is_within(plain, "/var/run") else plain


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


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
