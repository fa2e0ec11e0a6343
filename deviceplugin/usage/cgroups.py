"""Finds the node's processes by pod and container, from the kernel's files: cgroup v1 and v2, with any driver.

Invariant: where it is uncertain whether a pod's processes have ended, they have not.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from .cgroup_paths import Owner, container_in, is_class, is_kubepods, owner_of, pod_in

ROOT: Final = Path("/sys/fs/cgroup")
PROC: Final = Path("/proc")
_UNIFIED: Final = "cgroup.controllers"
_PROCESSES: Final = "cgroup.procs"
_PAGE: Final = 64 * 1024

Process = tuple[int, int]
"""The inode and the creation time of /proc/PID, which tell a process from a later one with its pid."""


class Cgroups:
    """Reads cgroups; `owner` takes microseconds, `pods_with_processes` reads all processes: call it in a thread."""

    def __init__(self, root: Path = ROOT, proc: Path = PROC) -> None:
        self._folders = PodFolders(root)
        self._proc = proc

    def owner(self, pid: int) -> Owner | None:
        """Returns the owner; None for a process of the node itself, and for one that has ended."""
        return owner_of(_read(f"{self._proc}/{pid}/cgroup"))

    def process(self, pid: int) -> Process | None:
        """Identifies a process; None where it has ended. Costs a tenth of `owner`."""
        try:
            found = os.stat(f"{self._proc}/{pid}")  # noqa: PTH116 - for hundreds at each scrape
        except OSError:
            return None
        return found.st_ino, found.st_ctime_ns

    def pids(self, pod: str, container: str = "") -> tuple[int, ...]:
        """Returns the processes of a container, or of the whole pod."""
        folder = self._folders.find(pod)
        if folder is None:
            return ()
        tops = [folder / each.name for each in _folders_in(folder) if container_in(each.name) == container]
        return tuple(sorted({pid for top in (tops if container else [folder]) for pid in _pids_below(top)} - {0}))

    def folder(self, pod: str, container: str) -> str:
        """Returns the folder of a container; empty where there is none, and with cgroup v1, which has one for each
        controller.
        """
        pod_folder = self._folders.find(pod) if self._folders.is_unified else None
        if pod_folder is None:
            return ""
        return next((each.path for each in _folders_in(pod_folder) if container_in(each.name) == container), "")

    def pods_with_processes(self, pods: Collection[str]) -> frozenset[str]:
        """Returns the pods with a live process, and those for which that is unknown."""
        asked = frozenset(pods)
        folders = {pod: self._folders.find(pod) for pod in asked}
        living = {pod for pod, folder in folders.items() if folder is not None and _has_processes(folder)}
        if living == asked:
            return asked
        seen = {owner.pod for pid in self._processes() if (owner := self.owner(pid))} - {""}
        if not seen and not self._folders.found:
            return asked  # these are the wrong files: even a node without pods has kubelet's folder
        return frozenset(living | (asked & seen))

    def _processes(self) -> Iterator[int]:
        return (int(each.name) for each in _folders_in(self._proc) if each.name.isdigit())


class PodFolders:
    """The cgroup folders of pods, below any parent that kubelet was configured with; remembered once found."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tops: list[Path] = []
        self._known: dict[str, Path] = {}

    @property
    def found(self) -> bool:
        """Returns whether kubelet's folder exists."""
        return bool(self._tops)

    @property
    def is_unified(self) -> bool:
        return (self._root / _UNIFIED).exists()

    def find(self, pod: str) -> Path | None:
        known = self._known.get(pod)
        if known is None or not known.is_dir():
            self._scan()
        return self._known.get(pod)

    def _scan(self) -> None:
        """Lists three folders; the tree is walked only while kubelet's is not there."""
        if not self._tops or not all(top.is_dir() for top in self._tops):
            self._tops = self._find_tops()
        classes = [Path(each.path) for top in self._tops for each in _folders_in(top) if is_class(each.name)]
        found = ((pod_in(each.name), each) for parent in (*self._tops, *classes) for each in _folders_in(parent))
        self._known = {pod: Path(each.path) for pod, each in found if pod}

    def _find_tops(self) -> list[Path]:
        """Finds the parents; with v1 the pods are in many hierarchies alike, and one is enough."""
        return next((tops for each in _hierarchies(self._root) if (tops := list(_tops_below(each)))), [])


def _hierarchies(root: Path) -> list[Path]:
    """Yields the roots: one with v2; with v1 one for each controller, without links to them."""
    if (root / _UNIFIED).exists():
        return [root]
    found = [Path(each.path) for each in _folders_in(root)]
    return sorted(found, key=lambda hierarchy: (hierarchy.name != "memory", hierarchy.name))


def _tops_below(hierarchy: Path) -> Iterator[Path]:
    for folder, below, _ in os.walk(hierarchy):
        yield from (Path(folder, name) for name in below if is_kubepods(name))
        below[:] = [name for name in below if not is_kubepods(name) and not container_in(name)]


def _pids_below(top: Path) -> Iterator[int]:
    """Reads pids; a process of a foreign namespace is 0."""
    for folder, _, _ in os.walk(top):
        yield from map(int, _read(f"{folder}/{_PROCESSES}").split())


def _has_processes(top: Path) -> bool:
    return any(True for _ in _pids_below(top))


def _folders_in(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # removed meanwhile, or never there


def _read(path: str) -> str:
    """Reads a file; empty where the process has ended, or the kernel hides it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return b"".join(iter(lambda: os.read(file, _PAGE), b"")).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)
