"""The cgroups of a node's pods: the one thing that the kernel does not take away with the node's processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from .waiting import wait_until

_MOUNT = Path("/sys/fs/cgroup")
_PREFIX = "halfcard-"


def _unified() -> bool:
    return (_MOUNT / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    """One with cgroup v2; with v1 one for each controller, of which some have a second name as a link."""
    if _unified():
        return [_MOUNT]
    return [each for each in _MOUNT.iterdir() if each.is_dir() and not each.is_symlink()]


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


def _sweep(clusters: Path) -> None:
    """Those of test runs that were killed: their cluster's folder is gone."""
    for group in node_cgroups():
        if not (clusters / group.name.removeprefix(_PREFIX).split(".")[0]).exists():
            _removed(group)


def _offer_controllers() -> None:
    """With cgroup v2 a cgroup has the controllers that the one above it offers; kubelet asks for all it uses."""
    for controller in (_MOUNT / "cgroup.controllers").read_text().split():
        with suppress(OSError):  # kubelet says so where it needs one that cannot be had
            (_MOUNT / "cgroup.subtree_control").write_text(f"+{controller}")


@contextmanager
def node_cgroup(cluster: Path, node: str) -> Iterator[str]:
    """Yields the name of the cgroup for kubelet's own; on leaving no process of the node may be left."""
    _sweep(cluster.parent)
    name = f"{_PREFIX}{cluster.name}.{node}"
    if _unified():
        _offer_controllers()
    groups = [hierarchy / name for hierarchy in _hierarchies()]
    try:
        for group in groups:
            group.mkdir()
        yield f"/{name}"
    finally:
        for group in groups:
            wait_until(partial(_removed, group), what=f"{group} to be empty")
