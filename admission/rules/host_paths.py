"""The rule about folders and files of the node that a pod mounts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.problems import HOST_PATH, Problem

from .subject import Subject

_LINKS_TO_ROOT: Final = re.compile(r"^(/proc/([0-9]+|self|thread-self)(/task/[0-9]+)?/(root|cwd))+(?=/|$)")


def host_paths_are_allowed(subject: Subject) -> Iterator[Problem]:
    spec = subject.pod.spec
    for number, volume in enumerate((spec and spec.volumes) or ()):
        if volume.host_path is not None and leads_to_gpu(volume.host_path.path):
            where = f"spec.volumes[{number}].hostPath.path"
            fix = "remove it or mount less, and ask for GPU in resources"
            yield HOST_PATH.broken(where, volume.host_path.path, fix)


def leads_to_gpu(path: str) -> bool:
    """Returns whether the path is protected, or is below or above a protected path."""
    real = real_path(path)
    return real.startswith(names.DEVICE_FILES) or any(
        _is_within(real, protected) or _is_within(protected, real) for protected in names.PROTECTED_PATHS
    )


def real_path(path: str) -> str:
    """Returns the path that is meant: /var/run is /run, // is /, and /proc has links to the root of the host."""
    plain = _LINKS_TO_ROOT.sub("", posixpath.normpath("/" + path.lstrip("/"))) or "/"
    return plain.removeprefix("/var") if _is_within(plain, "/var/run") else plain


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
