"""The cgroups of a node's pods, which the kernel does not remove with the node's processes.

Law: the process that runs a node holds the locks of its cgroups, and the kernel releases them when it ends; cgroups
that no process has locked are left over.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from ..waiting import wait_until

_MOUNT = Path("/sys/fs/cgroup")
_PREFIX = "halfcard-"


def _unified() -> bool:
    return (_MOUNT / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    """Returns one hierarchy with cgroup v2; with v1 one for each controller, some of which have a link as a second
    name.
    """
    if _unified():
        return [_MOUNT]
    return [each for each in _MOUNT.glob("*") if each.is_dir() and not each.is_symlink()]


def _remove(group: Path) -> bool:
    """Removes a cgroup from the leaves up; returns False while one of its processes is still ending."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            Path(folder).rmdir()
    except OSError:
        return False
    return not group.exists()


def node_cgroups() -> list[Path]:
    return [group for hierarchy in _hierarchies() for group in hierarchy.glob(f"{_PREFIX}*")]


def _lock(group: Path, kind: int = fcntl.LOCK_EX) -> int:
    """Takes the lock, which is held until the handle is closed."""
    handle = os.open(group, os.O_RDONLY)
    try:
        fcntl.flock(handle, kind)
    except OSError:
        os.close(handle)
        raise
    return handle


@contextmanager
def _alone() -> Iterator[None]:
    """Makes sure that no process sweeps a cgroup between its creation and its lock."""
    handle = _lock(_MOUNT)
    try:
        yield
    finally:
        os.close(handle)


def _is_our_name(group: Path) -> bool:
    try:
        return group.stat().st_uid == os.geteuid()
    except FileNotFoundError:
        return False


def _remove_unlocked(group: Path) -> bool:
    """Removes a cgroup that no process has locked; returns False while one of its processes is still ending."""
    try:
        handle = _lock(group, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return True
    try:
        return _remove(group)
    finally:
        os.close(handle)


def sweep() -> bool:
    """Removes what killed nodes left; returns False while one of their processes is still ending."""
    ours = [group for group in node_cgroups() if _is_our_name(group)]
    if not ours:
        return True
    with _alone():
        left = [group for group in ours if not _remove_unlocked(group)]
    return not left


def _offer_controllers() -> None:
    """Enables in the parent what kubelet uses: with cgroup v2 a cgroup has only the controllers that its parent
    offers.
    """
    for controller in (_MOUNT / "cgroup.controllers").read_text().split():
        with suppress(OSError):  # kubelet says so where it needs one that cannot be had
            (_MOUNT / "cgroup.subtree_control").write_text(f"+{controller}")


def _create(groups: Sequence[Path], stack: ExitStack) -> None:
    """Creates a cgroup that is ours until the stack is closed."""
    with _alone():
        for group in groups:
            group.mkdir()
            stack.callback(os.close, _lock(group))


@contextmanager
def node_cgroup(cluster: Path, node: str) -> Iterator[str]:
    """Yields the name of the cgroup for kubelet; on exit no process of the node may be left."""
    sweep()
    name = f"{_PREFIX}{cluster.name}.{node}"
    if _unified():
        _offer_controllers()
    groups = [hierarchy / name for hierarchy in _hierarchies()]
    with ExitStack() as stack:
        try:
            _create(groups, stack)
            yield f"/{name}"
        finally:
            for group in groups:
                wait_until(partial(_remove, group), what=f"{group} to be empty")
