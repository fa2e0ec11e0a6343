"""The cgroups of a node's pods: the one thing that the kernel does not take away with the node's processes.

Law: whoever runs a node holds the locks of its cgroups, and the kernel lets go of them with him: what nobody holds is
left over.
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
    """One with cgroup v2; with v1 one for each controller, of which some have a second name as a link."""
    if _unified():
        return [_MOUNT]
    return [each for each in _MOUNT.glob("*") if each.is_dir() and not each.is_symlink()]


def _removed(group: Path) -> bool:
    """From the leaves up; False while a process is still on its way out."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            Path(folder).rmdir()
    except OSError:
        return False
    return not group.exists()


def node_cgroups() -> list[Path]:
    return [group for hierarchy in _hierarchies() for group in hierarchy.glob(f"{_PREFIX}*")]


def _lock(group: Path, kind: int = fcntl.LOCK_EX) -> int:
    """Held until the handle is closed."""
    handle = os.open(group, os.O_RDONLY)
    try:
        fcntl.flock(handle, kind)
    except OSError:
        os.close(handle)
        raise
    return handle


@contextmanager
def _alone() -> Iterator[None]:
    """Nobody sweeps a cgroup between its creation and its lock."""
    handle = _lock(_MOUNT)
    try:
        yield
    finally:
        os.close(handle)


def _is_ours(group: Path) -> bool:
    try:
        return group.stat().st_uid == os.geteuid()
    except FileNotFoundError:
        return False


def _gone(group: Path) -> bool:
    """Removed where nobody holds it; False while a process is still on its way out."""
    try:
        handle = _lock(group, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return True
    try:
        return _removed(group)
    finally:
        os.close(handle)


def swept() -> bool:
    """What our nodes have left that were killed is removed; False while a process of theirs is on its way out."""
    ours = [group for group in node_cgroups() if _is_ours(group)]
    if not ours:
        return True
    with _alone():
        left = [group for group in ours if not _gone(group)]
    return not left


def _offer_controllers() -> None:
    """With cgroup v2 a cgroup has the controllers that the one above it offers; kubelet asks for all it uses."""
    for controller in (_MOUNT / "cgroup.controllers").read_text().split():
        with suppress(OSError):  # kubelet says so where it needs one that cannot be had
            (_MOUNT / "cgroup.subtree_control").write_text(f"+{controller}")


def _created(groups: Sequence[Path], stack: ExitStack) -> None:
    """Ours until the stack is closed."""
    with _alone():
        for group in groups:
            group.mkdir()
            stack.callback(os.close, _lock(group))


@contextmanager
def node_cgroup(cluster: Path, node: str) -> Iterator[str]:
    """Yields the name of the cgroup for kubelet's own; on leaving no process of the node may be left."""
    swept()
    name = f"{_PREFIX}{cluster.name}.{node}"
    if _unified():
        _offer_controllers()
    groups = [hierarchy / name for hierarchy in _hierarchies()]
    with ExitStack() as stack:
        try:
            _created(groups, stack)
            yield f"/{name}"
        finally:
            for group in groups:
                wait_until(partial(_removed, group), what=f"{group} to be empty")
