"""Cgroups in folders as the kernel shows them; the tests write the kernel's files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest

from deviceplugin.usage.cgroup_paths import Owner
from deviceplugin.usage.cgroups import Cgroups

UID: Final = "0f1a9f52-5c3e-4a0a-9d0e-6b1f8f0c7a11"
OTHER: Final = "77777777-5c3e-4a0a-9d0e-6b1f8f0c7a11"
ID: Final = "5f" * 32
SECOND: Final = "a7" * 32


def cgroupfs(uid: str, container: str = "") -> str:
    return f"kubepods/burstable/pod{uid}/{container}"


def systemd(uid: str, container: str = "") -> str:
    name = uid.replace("-", "_")
    folder = f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{name}.slice"
    return f"{folder}/cri-containerd-{container}.scope" if container else folder


SHAPES: Final = {
    "cgroupfs": cgroupfs,
    "systemd": systemd,
    "guaranteed": lambda uid, container="": f"kubepods/pod{uid}/{container}",
    "nested": lambda uid, container="": f"some/where-else/{cgroupfs(uid, container)}",
}


class Machine:
    """The two file systems of a machine."""

    def __init__(self, folder: Path, *, unified: bool) -> None:
        self.root, self.proc = folder / "cgroup", folder / "proc"
        self.unified = unified
        self.tops = [self.root] if unified else [self.root / name for name in ("cpu", "memory", "systemd")]
        for top in (*self.tops, self.proc):
            top.mkdir(parents=True)
        if unified:
            (self.root / "cgroup.controllers").write_text("cpu memory\n")
        else:
            (self.root / "cpuacct").symlink_to("cpu")
        self.cgroups = Cgroups(self.root, self.proc)

    def group(self, path: str, *pids: int) -> None:
        for top in self.tops:
            folder = top / path
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))

    def process(self, pid: int, path: str) -> None:
        file = self.proc / str(pid) / "cgroup"
        file.parent.mkdir()
        lines = ["0::/"] if self.unified else ["9:cpu:/", "0::/"]
        file.write_text("\n".join([f"4:memory:/{path}" if not self.unified else f"0::/{path}", *lines]) + "\n")

    def run(self, pid: int, path: str) -> None:
        self.group(path, pid)
        self.process(pid, path)

    def end(self, pid: int, path: str) -> None:
        self.group(path)
        (self.proc / str(pid) / "cgroup").unlink()
        (self.proc / str(pid)).rmdir()

    def remove(self, path: str) -> None:
        for top in self.tops:
            for folder, _, files in os.walk(top / path, topdown=False):
                for file in files:
                    Path(folder, file).unlink()
                Path(folder).rmdir()


@pytest.fixture(params=["v1", "v2"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path, unified=request.param == "v2")


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_the_processes_of_a_pod_and_of_each_container_are_found(machine: Machine, shape: object) -> None:
    assert callable(shape)
    machine.group("system.slice/kubelet.service", 1)
    machine.group(shape(UID, ID), 10, 11)
    machine.group(shape(UID, ID) + "/made-by-itself", 12)
    machine.group(shape(UID, SECOND), 20)
    machine.group(shape(OTHER, ID), 30)
    assert machine.cgroups.pids(UID) == (10, 11, 12, 20)
    assert machine.cgroups.pids(UID, ID) == (10, 11, 12)
    assert machine.cgroups.pids(UID, SECOND) == (20,)
    assert machine.cgroups.pids(UID, "00" * 32) == ()


def test_a_pod_that_came_later_is_found(machine: Machine) -> None:
    machine.group(cgroupfs(UID, ID), 10)
    assert machine.cgroups.pids(OTHER) == ()
    machine.group(f"kubepods/besteffort/pod{OTHER}/{ID}", 30)
    assert machine.cgroups.pids(OTHER) == (30,)


def test_pods_are_found_again_after_kubelet_moved_them(machine: Machine) -> None:
    machine.group(cgroupfs(UID, ID), 10)
    assert machine.cgroups.pids(UID) == (10,)
    machine.remove("kubepods")
    machine.group(systemd(UID, ID), 11)
    assert machine.cgroups.pids(UID) == (11,)


def test_folders_within_containers_are_not_searched(machine: Machine) -> None:
    machine.group(f"{cgroupfs(UID, ID)}/{cgroupfs(OTHER, SECOND)}", 66)
    assert machine.cgroups.pids(OTHER) == ()
    assert machine.cgroups.pids(UID, ID) == (66,)


def test_found_pods_are_not_searched_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.group(cgroupfs(UID, ID), 10)
    machine.cgroups.pids(UID)
    listed: list[str] = []
    scandir = os.scandir

    def listing(path: Any) -> Any:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", listing)
    machine.cgroups.pids(UID)
    assert all(UID in path for path in listed)
    machine.cgroups.pids(OTHER)
    assert [path for path in listed if "kubepods" not in path] == []


def test_a_process_has_an_owner_until_it_ends(machine: Machine) -> None:
    machine.run(10, cgroupfs(UID, ID))
    assert machine.cgroups.owner(10) == Owner(UID, ID)
    machine.end(10, cgroupfs(UID, ID))
    assert machine.cgroups.owner(10) is None


# --- whether a pod lives


def test_a_pod_is_alive_as_long_as_one_of_its_processes(machine: Machine) -> None:
    machine.run(10, cgroupfs(UID, ID))
    machine.run(11, cgroupfs(UID, SECOND))
    assert machine.cgroups.pods_with_processes({UID})
    machine.end(10, cgroupfs(UID, ID))
    assert machine.cgroups.pods_with_processes({UID})
    machine.end(11, cgroupfs(UID, SECOND))
    assert not machine.cgroups.pods_with_processes({UID})


def test_a_pod_without_a_folder_is_dead_even_if_it_was_the_only_one(machine: Machine) -> None:
    machine.run(10, cgroupfs(UID, ID))
    assert machine.cgroups.pods_with_processes({UID})
    machine.end(10, cgroupfs(UID, ID))
    machine.remove(f"kubepods/burstable/pod{UID}")
    assert not machine.cgroups.pods_with_processes({UID})


def test_a_process_is_alive_even_if_the_runtime_put_it_elsewhere_than_kubelet(machine: Machine) -> None:
    machine.group(systemd(UID))
    name = UID.replace("-", "_")
    machine.run(10, f"system.slice/containerd.service/kubepods-besteffort-pod{name}.slice:cri-containerd:{ID}")
    assert machine.cgroups.pods_with_processes({UID})


def test_a_process_that_only_its_folder_shows_is_alive(machine: Machine) -> None:
    """The kernel shows it as 0: it is in a pid namespace that the agent cannot see."""
    machine.group(cgroupfs(UID, ID), 0)
    assert machine.cgroups.pods_with_processes({UID})
    assert machine.cgroups.pids(UID) == ()


def test_without_kubelets_folder_other_pods_prove_that_the_cgroups_are_readable(machine: Machine) -> None:
    machine.process(10, cgroupfs(OTHER, ID))
    assert machine.cgroups.pods_with_processes({UID, OTHER}) == {OTHER}


def test_if_no_pod_is_visible_every_pod_counts_as_alive(machine: Machine) -> None:
    machine.process(1, "system.slice/init")
    assert machine.cgroups.pods_with_processes({UID, OTHER}) == {UID, OTHER}


def test_without_the_file_systems_every_pod_counts_as_alive(tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path / "none", tmp_path / "neither")
    assert cgroups.pods_with_processes({UID}) and cgroups.pids(UID) == () and cgroups.owner(1) is None


def test_this_machines_own_files_can_be_read() -> None:
    cgroups = Cgroups()
    cgroups.owner(os.getpid())
    assert cgroups.pids(UID) == ()
