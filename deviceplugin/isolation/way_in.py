"""Changes the edits by which a container gets its cards, so that it finds the isolation libraries where the driver's
would be, and the driver's at the place where the isolation libraries look for them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any, Final

from halfcard import names

from ..inject.cdi import READ_ONLY, Edits, merged

PRELOAD: Final = "ld.so.preload"
"""The file beside the libraries that becomes /etc/ld.so.preload."""

_REPLACED: Final = (names.CUDA_LIBRARY, names.NVML_LIBRARY)
_READ_WRITE: Final = ("rw", "nosuid", "nodev", "noexec", "bind")
_COMPAT_HOOK: Final = "enable-cuda-compat"

Mount = Mapping[str, Any]


class NotHeldError(Exception):
    """A container cannot be held; the text says why, and what to do."""


def held(edits: Edits, *, libraries: str, files: str) -> Edits:
    """Returns the edits of a held container; both folders are the node's.

    Raises:
        NotHeldError: the edits name no driver's library, or several.
    """
    mounts = mounts_of(edits)
    found = [each for each in mounts if _is(each, names.CUDA_LIBRARY)]
    if len(found) != 1:
        raise NotHeldError(_not_one(found))
    replaced = [new for each in mounts for new in _replaced(each, libraries)]
    hooks = [each for each in edits.get("hooks") or () if not _prefers_images(each)]
    return merged([{**edits, "mounts": replaced, "hooks": hooks}, {"mounts": [*_ours(libraries, files)]}])


def mounts_of(edits: Edits) -> list[Mount]:
    return [each for each in edits.get("mounts") or () if isinstance(each, Mapping)]


def driver_mounts(mounts: Iterable[Mount]) -> dict[str, Mount]:
    """Returns the mounts of the driver's libraries that ours replace, by the name of ours."""
    return {library: each for each in mounts for library in _REPLACED if _is(each, library)}


def _not_one(found: Iterable[Mount]) -> str:
    paths = ", ".join(str(each["containerPath"]) for each in found)
    if not paths:
        return f"NVIDIA's CDI description of these cards mounts no {names.CUDA_LIBRARY}; run {names.DESCRIBE_CARDS}"
    return f"NVIDIA's CDI description mounts several {names.CUDA_LIBRARY}: {paths}; leave that of 64 bits alone in it"


def _is(mount: Mount, library: str) -> bool:
    """Returns whether the mount is of this library, in any version."""
    return posixpath.basename(str(mount.get("containerPath", ""))).startswith(library.removesuffix("1"))


def _replaced(mount: Mount, libraries: str) -> list[Mount]:
    for library in _REPLACED:
        if _is(mount, library):
            ours = {**mount, "hostPath": f"{libraries}/{library}", "options": READ_ONLY}
            return [ours, {**mount, "containerPath": f"{names.RUN_FOLDER}/driver/{library}"}]
    return [mount]


def _prefers_images(hook: object) -> bool:
    """Returns whether the hook prefers a driver that the image brings."""
    return isinstance(hook, Mapping) and _COMPAT_HOOK in (hook.get("args") or ())


def _ours(libraries: str, files: str) -> Iterable[Mount]:
    yield _mount(libraries, f"{names.RUN_FOLDER}/library")
    yield _mount(f"{libraries}/{PRELOAD}", "/etc/ld.so.preload")
    yield _mount(f"{files}/control", f"{names.RUN_FOLDER}/control")
    yield _mount(f"{files}/account", f"{names.RUN_FOLDER}/account", _READ_WRITE)


def _mount(on_node: str, inside: str, options: tuple[str, ...] = READ_ONLY) -> Mount:
    return {"hostPath": on_node, "containerPath": inside, "options": options}
