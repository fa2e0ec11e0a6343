"""Containers with shares on a real node are held to them by the image's libraries, over a stand-in for libcuda."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from devcluster.objects import Object
from halfcard import names
from halfcard.api_paths import path_of_pod
from halfcard.isolation.shared_files import read_control
from tests.builders import pod
from tests.cluster.pods import wait_for_phase
from tests.nvml.stand_in import StandInProcess

from .cuda_node import CARD, DRIVER, PROGRAM, cuda_node
from .gpu_cluster import GpuCluster

SHARE: Final = {"core": 30, "memory": 4}
"""1024 MiB."""

OUT_OF_MEMORY: Final = 2


@pytest.fixture(scope="module")
def held(gpus: GpuCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuCluster]:
    """A node with one card that enforces isolation."""
    with (
        cuda_node(gpus, tmp_path_factory.mktemp("cuda")) as libraries,
        gpus.reconfigured([CARD], {"isolation": "enforce"}, libraries),
    ):
        yield gpus


def allocate(gpus: GpuCluster, in_pod: Object, *mib: int, library: str = DRIVER) -> list[int]:
    """Runs a program in a container that allocates these amounts; returns the result of each call."""
    done = gpus.execute(in_pod, f"{PROGRAM} {library} {' '.join(map(str, mib))}")
    assert done.code == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def start(gpus: GpuCluster, in_pod: Object, mib: int) -> None:
    """Starts a program in a container that allocates this much and keeps it."""
    done = gpus.execute(in_pod, f"{PROGRAM} {DRIVER} {mib} stay > /out 2>&1 & until [ -s /out ]; do :; done; cat /out")
    assert (done.code, done.stdout.split()) == (0, ["0"]), done.stderr


@pytest.mark.parametrize("library", [DRIVER, "libcuda.so.1"], ids=["the driver's file", "its name"])
def test_a_container_over_its_share_gets_out_of_memory_and_its_neighbour_does_not_notice(
    held: GpuCluster, space: str, library: str
) -> None:
    greedy, neighbour = (held.run(space, pod(name).asks(**SHARE)) for name in ("greedy", "neighbour"))
    start(held, neighbour, 500)
    assert allocate(held, greedy, 600, 600, 400, library=library) == [0, OUT_OF_MEMORY, 0]
    assert allocate(held, neighbour, 500) == [0]
    assert held.report(greedy).limits["held_by"] == "library"


def wait_for_condition(gpus: GpuCluster, reason: str) -> None:
    def found() -> str:
        stored = gpus.cluster.request("GET", f"/api/v1/nodes/{gpus.node.name}").must()
        conditions = {each["type"]: each["reason"] for each in stored["status"]["conditions"]}
        return str(conditions.get(names.ISOLATION_CONDITION))

    gpus.cluster.wait_until(lambda: found() == reason, what=f"the node to say {reason}", details=found)


def test_the_node_and_its_pods_say_that_shares_are_held(held: GpuCluster, space: str) -> None:
    wait_for_condition(held, "SharesHeld")
    held.run(space, pod("held").asks(**SHARE))
    path = path_of_pod(space, "held")

    def recorded() -> str:
        annotations = held.cluster.request("GET", path).must()["metadata"]["annotations"]
        return str(annotations.get(names.HELD_BY))

    by_library = '{"containers-0":{"by":["library"]}}'
    held.cluster.wait_until(lambda: recorded() == by_library, what="the pod to say what holds it", details=recorded)


def test_a_whole_card_is_not_held(held: GpuCluster, space: str) -> None:
    whole = held.run(space, pod("whole").asks(core=100, memory=59))
    assert allocate(held, whole, 4000) == [0]
    assert held.report(whole).limits["held_by"] is None


def test_programs_go_on_and_stay_held_while_the_agent_is_away_and_when_it_is_back(held: GpuCluster, space: str) -> None:
    running = held.run(space, pod("running").asks(**SHARE))
    start(held, running, 500)
    held.agent.kill()
    assert allocate(held, running, 600, 400) == [OUT_OF_MEMORY, 0]
    held.agent.start()
    assert allocate(held, running, 600, 400) == [OUT_OF_MEMORY, 0]
    assert held.execute(running, f"pidof {PROGRAM.rpartition('/')[2]}").code == 0


def test_a_container_cannot_change_its_limits_nor_use_the_nodes_memory_by_its_account(
    held: GpuCluster, space: str
) -> None:
    hostile = held.run(space, pod("hostile").asks(**SHARE))
    assert held.execute(hostile, f"echo > {names.RUN_FOLDER}/control").code != 0
    assert held.execute(hostile, f"rm {names.RUN_FOLDER}/account").code != 0
    account = f"{names.RUN_FOLDER}/account"
    size = int(held.execute(hostile, f"stat -c %s {account}").stdout)
    assert held.execute(hostile, f"truncate -s 64M {account}").code == 0
    held.cluster.wait_until(
        lambda: int(held.execute(hostile, f"stat -c %s {account}").stdout) == size, what="the account to be cut"
    )


def test_a_node_whose_libraries_fail_their_trial_gets_no_shares_and_goes_on_with_whole_cards(
    held: GpuCluster, space: str
) -> None:
    running = held.run(space, pod("running").asks(**SHARE))
    description = held.node.path("/etc/cdi/nvidia.json")
    kept = description.read_text()
    description.write_text(kept.replace("driver.so", "share_client"))
    try:
        wait_for_condition(held, "SharesNotHeld")
        name = held.create(space, pod("share").asks(**SHARE))
        held.cluster.wait_until(
            lambda: "no card can hold containers to their share" in events(held, space, name),
            what="the scheduler to say why",
        )
        assert allocate(held, running, 1200, 500) == [OUT_OF_MEMORY, 0]
        delete(held, space, "running")
        held.run(space, pod("whole").asks(core=100, memory=59))
        delete(held, space, "whole")
    finally:
        description.write_text(kept)
    wait_for_condition(held, "SharesHeld")
    wait_for_phase(held.cluster, space, name, "Running")


def delete(gpus: GpuCluster, space: str, name: str) -> None:
    done = gpus.cluster.kubectl("delete", "pod", name, f"--namespace={space}")
    assert done.code == 0, done.stderr


def events(gpus: GpuCluster, space: str, name: str) -> str:
    return gpus.cluster.kubectl("describe", "pod", name, f"--namespace={space}").stdout


def test_memory_that_the_driver_measures_and_no_call_shows_counts_within_the_share(
    held: GpuCluster, space: str
) -> None:
    running = held.run(space, pod("context").asks(**SHARE).annotated({"tencent.com/vcuda-core-limit": "60"}))
    start(held, running, 500)
    assert allocate(held, running, 300) == [0]
    held.agent.driver.processes(CARD.uuid, StandInProcess(client(held, running), memory_mib=900))
    token, said = held.agent.token(), "context/containers-0 is held on card 0: 500 MiB in its account"
    held.cluster.wait_until(
        lambda: said in " ".join(held.agent.get(names.USAGE_PATH, token)[1].split()), what="the process to be measured"
    )
    assert allocate(held, running, 300) == [OUT_OF_MEMORY]
    held.cluster.wait_until(lambda: spare(held) == 1, what="the container to have spare cores")
    held.agent.driver.processes(CARD.uuid)
    # a new context is taken for as large as the one that was seen: 400 MiB
    held.cluster.wait_until(lambda: allocate(held, running, 100) == [0], what="500 MiB to count again")


def spare(gpus: GpuCluster) -> int:
    """Returns whether the containers of the node have spare cores, as their libraries read it."""
    controls = gpus.node.path(f"{names.RUN_FOLDER}/shares").glob("*/control")
    return max(card.spare for control in controls for card in read_control(control.read_bytes()))


def client(gpus: GpuCluster, in_pod: Object) -> int:
    """Returns the pid on the node of the program that stays in a container."""
    _, _, container = in_pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")
    name = PROGRAM.rpartition("/")[2]
    found = gpus.node.run(
        "sh", "-c", f"grep -ls {container} $(grep -lsx {name} /proc/[0-9]*/comm | sed s/comm/cgroup/)"
    )
    (path,) = found.stdout.split()
    return int(path.split("/")[2])
