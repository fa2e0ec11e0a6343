"""The owners of processes, from folders as the kernel shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from deviceplugin.usage.cgroup_paths import Owner
from deviceplugin.usage.process_owners import ProcessOwners

from .test_cgroups import ID, OTHER, SECOND, UID, Machine, cgroupfs

FIRST: Final = Owner(UID, ID)
NEXT: Final = Owner(OTHER, SECOND)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, unified=True)


def test_the_container_of_a_process_is_read_only_once(machine: Machine) -> None:
    machine.process(7, cgroupfs(UID, ID))
    machine.process(8, "init.scope")
    owners = ProcessOwners(machine.cgroups)
    assert owners.of([7, 8, 9]) == {7: FIRST}
    (machine.proc / "7" / "cgroup").write_text(f"0::/{cgroupfs(OTHER, SECOND)}\n")
    assert owners.of([7, 8]) == {7: FIRST}


def test_a_process_with_a_reused_pid_is_read_again(machine: Machine) -> None:
    machine.run(7, cgroupfs(UID, ID))
    owners = ProcessOwners(machine.cgroups)
    assert owners.of([7]) == {7: FIRST}
    machine.end(7, cgroupfs(UID, ID))
    assert owners.of([7]) == {}
    machine.run(7, cgroupfs(OTHER, SECOND))
    assert owners.of([7]) == {7: NEXT}
    machine.end(7, cgroupfs(OTHER, SECOND))
    machine.run(7, cgroupfs(UID, ID))
    assert owners.of([7]) == {7: FIRST}
