"""Parses cgroup paths: to which pod and container a process belongs, whichever runtime and driver made the path.

Invariant: the outermost pod counts. Whatever cgroups a container creates within its own, it stays in its pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_UID: Final = r"[0-9a-f]{8}(?:(?P<dash>[-_])[0-9a-f]{4}(?:(?P=dash)[0-9a-f]{4}){2}(?P=dash)[0-9a-f]{12}|[0-9a-f]{24})"
"""A pod's uid from the API server, or the hash of a static pod; systemd's names have no dashes."""
_POD: Final = re.compile(rf"(?:.*-)?pod(?P<uid>{_UID})(?:\.slice)?")
_CONTAINER: Final = re.compile(r"(?:(?P<prefix>[\w-]+)-)?(?P<id>[0-9a-f]{64})(?:\.scope)?")
_KUBEPODS: Final = re.compile(r"(?:.*-)?kubepods(?:\.slice)?")
_CLASS: Final = re.compile(r"(?:.*kubepods-)?(?:burstable|besteffort)(?:\.slice)?")
_GONE: Final = " (deleted)"
_MONITOR: Final = "conmon"


class Owner(NamedTuple):
    """The owner of a process; `container` is empty for a process outside containers, `pod` for one outside pods."""

    pod: str
    container: str


def owner_of(text: str) -> Owner | None:
    """Parses /proc/PID/cgroup: one line for each hierarchy, with paths relative to the reader's own root."""
    without_pod: Owner | None = None
    for line in text.split(
        "\n"
    ):  # only this ends a line: a container may put other separators into the name of a cgroup
        if owner := _owner(line):
            if owner.pod:
                return owner
            without_pod = without_pod or owner
    return without_pod


def pod_in(name: str) -> str:
    """Returns the pod's uid in one name of a path; empty for none."""
    found = _POD.fullmatch(name)
    return found["uid"].replace("_", "-") if found else ""


def container_in(name: str) -> str:
    """Returns the container's id likewise; empty for the cgroup of its monitor."""
    found = _CONTAINER.fullmatch(name)
    return "" if found is None or _MONITOR in (found["prefix"] or "") else found["id"]


def is_kubepods(name: str) -> bool:
    """Returns whether this is kubelet's folder of pods."""
    return _KUBEPODS.fullmatch(name) is not None


def is_class(name: str) -> bool:
    """Returns whether this is one of its two folders for pods of lower quality of service."""
    return _CLASS.fullmatch(name) is not None


def _owner(line: str) -> Owner | None:
    names = iter(_names(line))
    seen: list[str] = []
    for name in names:
        if pod := pod_in(name):
            return Owner(pod, container_in(next(names, "")))
        seen.append(name)
    container = _first(map(container_in, seen))
    return Owner("", container) if container else None


def _names(line: str) -> Iterator[str]:
    """Yields names: a runtime without the systemd driver takes systemd's notation for a name: SLICE:RUNTIME:ID."""
    path = line.split(":", 2)[-1].removesuffix(_GONE)
    for name in path.split("/"):
        first, _, rest = name.partition(":")
        yield first
        if rest:
            yield rest.rpartition(":")[2]


def _first(found: Iterable[str]) -> str:
    return next(filter(None, found), "")
