"""The agent takes a node over from other systems' device plugins, and they take it back; no running pod changes.

The pages docs/from-*.md describe what is tested here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from devcluster.objects import Object
from halfcard import names
from tests.builders import PodBuilder, pod
from tests.cluster.pods import get_pod, wait_for_phase
from tests.cluster.site import NO_SCHEDULER, cards_of
from tests.nvml.stand_in import stand_in_cards

from .container_report import wrong_cards
from .gpu_churn import container_ids
from .gpu_cluster import GpuCluster
from .gpu_faults import events_of, kill_container, restart_kubelet, wait_restarted
from .other_plugin import OtherPlugin

CARDS: Final = 4
UUIDS: Final = tuple(card.uuid for card in stand_in_cards(CARDS))
UNITS: Final = 15109 // 256
SLICES: Final = 4
CONFIG: Final = "time-slicing-config"
SLICING: Final = f"""\
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: {SLICES}
"""
CORES: Final = 100 * (CARDS - 1)
"""Cores in percent: one card is time-sliced."""

SETTINGS: Final = {
    "node_resources": [names.VCUDA_CORE, names.VCUDA_MEMORY, names.ALIYUN_GPU_MEM, names.NVIDIA_GPU],
    "time_slicing": {"config": f"{names.NAMESPACE}/{CONFIG}", "default": "any"},
}


@dataclass(frozen=True)
class ForeignPod:
    """A pod that another system's scheduler and plugin placed: its request, its record, and the index of its card."""

    asks: Mapping[str, Any]
    record: Mapping[str, str]
    card: int

    def pod(self, name: str) -> PodBuilder:
        return pod(name).asks(**self.asks).annotated(self.record)


FOREIGN_PODS: Final = {
    "gaia": ForeignPod(
        {"core": 60, "memory": 20},
        {
            "tencent.com/predicate-gpu-idx-0": "3",
            "tencent.com/predicate-node": "gpu-a",
            "tencent.com/predicate-time": "1700000000000000000",
            "tencent.com/gpu-assigned": "true",
        },
        3,
    ),
    "ali": ForeignPod(
        {"gpu_mem": 9},
        {
            names.ALIYUN_INDEX: "2",
            names.ALIYUN_CARD_TOTAL: "14",
            names.ALIYUN_POD_TOTAL: "9",
            names.ALIYUN_ASSIGNED: "true",
            names.ALIYUN_ASSUME_TIME: "1700000000000000000",
        },
        2,
    ),
    "slice": ForeignPod({"gpu": 1}, {}, 1),
}


@contextmanager
def other_plugins(gpus: GpuCluster) -> Iterator[None]:
    """Runs the plugins of gpu-manager, gpushare and NVIDIA with time slices, with device ids as those spell them."""
    cores = [f"{names.VCUDA_CORE}-{number}" for number in range(100 * CARDS)]
    units = [f"{names.VCUDA_MEMORY}-268435456-{number}" for number in range(UNITS * CARDS)]
    gib = [f"{uuid}-_-{number}" for uuid in UUIDS for number in range(14)]
    # Kubelet allocates any of the slices: here all belong to one card.
    slices = [f"{UUIDS[1]}::{number}" for number in range(SLICES)]
    with ExitStack() as stack:
        for resource, ids, card in (
            (names.VCUDA_CORE, cores, "3"),
            (names.VCUDA_MEMORY, units, "3"),
            (names.ALIYUN_GPU_MEM, gib, "2"),
            (names.NVIDIA_GPU, slices, UUIDS[1]),
        ):
            stack.enter_context(OtherPlugin(gpus.node, resource, *ids, cards_for=partial(_fixed_card, card)))
        for resource, amount in ((names.VCUDA_CORE, 100 * CARDS), (names.ALIYUN_GPU_MEM, 14 * CARDS)):
            gpus.agent.wait_offered(resource, amount)
        gpus.agent.wait_offered(names.NVIDIA_GPU, SLICES)
        yield


def _fixed_card(card: str, _ids: Sequence[str]) -> str:
    return card


def run_foreign(gpus: GpuCluster, space: str, name: str, foreign: ForeignPod) -> Object:
    gpus.create(space, foreign.pod(name), nodeName=gpus.node.name, schedulerName=NO_SCHEDULER)
    running: Object = wait_for_phase(gpus.cluster, space, name, "Running")
    return running


@dataclass(frozen=True)
class TakenOver:
    gpus: GpuCluster
    space: str
    before: Mapping[str, Object]

    def now(self, name: str) -> Object:
        found: Object = get_pod(self.gpus.cluster, self.space, name)
        return found

    def check_unchanged(self) -> None:
        """Each pod runs in the same containers as before, and has the same spec; its annotations stay."""
        for name, earlier in self.before.items():
            now = self.now(name)
            assert (now["metadata"]["uid"], container_ids(now)) == (earlier["metadata"]["uid"], container_ids(earlier))
            assert [each["restartCount"] for each in now["status"]["containerStatuses"]] == [0]
            assert now["spec"] == earlier["spec"]
            assert _annotations(now).items() >= _annotations(earlier).items()


def _annotations(found: Object) -> dict[str, str]:
    return dict(found["metadata"].get("annotations") or {})


@pytest.fixture(scope="module")
def taken_over(gpus: GpuCluster) -> Iterator[TakenOver]:
    """A node that the agent has taken over while pods of the other systems run."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG}, "data": {"any": SLICING}}
    gpus.cluster.client.apply(gpus.cluster.admin, f"/api/v1/namespaces/{names.NAMESPACE}/configmaps", config)
    with gpus.reconfigured(stand_in_cards(CARDS), SETTINGS) as agent, gpus.space("taken-over") as space:
        agent.terminate()
        with other_plugins(gpus):
            with gpus.webhook.unregistered():
                before = {name: run_foreign(gpus, space, name, foreign) for name, foreign in FOREIGN_PODS.items()}
            agent.program.start()
            gpus.cluster.wait_until(
                lambda: f"{names.VCUDA_CORE} is served by another device plugin" in not_offered_events(gpus),
                what="a NotOffered event",
            )
        agent.wait_ready()
        agent.wait_offered(names.VCUDA_CORE, CORES)
        yield TakenOver(gpus, space, before)


def not_offered_events(gpus: GpuCluster) -> str:
    return "\n".join(message for reason, message in events_of(gpus) if reason == "NotOffered")


def test_running_pods_and_the_records_of_other_systems_are_unchanged(taken_over: TakenOver) -> None:
    taken_over.check_unchanged()
    for name in ("gaia", "ali"):
        assert _annotations(taken_over.now(name)) == _annotations(taken_over.before[name])


def test_the_card_of_a_time_slice_is_recorded_from_its_device_id(taken_over: TakenOver) -> None:
    assert cards_of(taken_over.now("slice")) == {"containers-0": [UUIDS[1]]}
    listed = {
        card["name"]: [(each["name"], each["recorded"]) for each in card["pods"]]
        for card in taken_over.gpus.extender.inspect(taken_over.gpus.node.name)["cards"]
    }
    assert listed == {
        UUIDS[0]: [],
        UUIDS[1]: [("slice", True)],
        UUIDS[2]: [("ali", True)],
        UUIDS[3]: [("gaia", True)],
    }


def test_new_pods_of_the_adopted_dialects_get_what_is_free(taken_over: TakenOver) -> None:
    gpus = taken_over.gpus
    with gpus.space("new-pods") as space:
        expected = {
            "beside-gaia": (pod("beside-gaia").asks(core=40, memory=30).annotated(BINPACK), {UUIDS[3]}),
            "too-much-for-it": (pod("too-much-for-it").asks(core=50, memory=10), {UUIDS[0], UUIDS[2]}),
            "another-slice": (pod("another-slice").asks(gpu=1).annotated(BINPACK), {UUIDS[1]}),
        }
        for name, (built, cards) in expected.items():
            running = gpus.run(space, built)
            assert wrong_cards(gpus.cluster, running) == []
            assert {each for found in cards_of(running).values() for each in found} <= cards, name
    taken_over.check_unchanged()


BINPACK: Final = {names.ASK_POLICY: "binpack"}


def test_adopted_pods_survive_a_kubelet_restart(taken_over: TakenOver) -> None:
    restart_kubelet(taken_over.gpus)
    taken_over.gpus.agent.wait_ready()
    taken_over.check_unchanged()


def test_switching_back_to_the_other_plugins_changes_no_running_pod(taken_over: TakenOver) -> None:
    gpus = taken_over.gpus
    with gpus.space("ours") as space:
        own = gpus.run(space, pod("ours").asks(core=20, memory=4))
        gpus.agent.terminate()
        with other_plugins(gpus), gpus.webhook.unregistered():
            taken_over.check_unchanged()
            assert container_ids(get_pod(gpus.cluster, space, "ours")) == container_ids(own)
            new = run_foreign(gpus, space, "new", FOREIGN_PODS["gaia"])
            assert gpus.report(new).cards == ("3",)
            kill_container(gpus.node, own, "containers-0")
            assert gpus.report(wait_restarted(gpus, own, "containers-0")).cards == tuple(cards_of(own)["containers-0"])
    gpus.agent.start()
    taken_over.check_unchanged()


def test_an_adopted_container_restarts_on_its_card(taken_over: TakenOver) -> None:
    """Restarts containers, so that no test that checks them may follow."""
    for name, foreign in FOREIGN_PODS.items():
        kill_container(taken_over.gpus.node, taken_over.now(name), "containers-0")
        restarted = wait_restarted(taken_over.gpus, taken_over.now(name), "containers-0")
        visible = taken_over.gpus.execute(restarted, f"echo ${names.VISIBLE_DEVICES}").stdout.strip()
        assert visible in (str(foreign.card), UUIDS[foreign.card])
        assert (
            cards_of(restarted)["containers-0"] == [UUIDS[1]]
            if name == "slice"
            else names.PLACEMENT not in restarted["metadata"].get("annotations", {})
        )


def test_no_free_device_is_offered_while_a_pod_with_unknown_cards_runs(taken_over: TakenOver) -> None:
    """Such as a pod of HAMi, whose device ids are numbers and whose records are not read."""
    gpus = taken_over.gpus
    with gpus.space("unknown") as space:
        gpus.agent.terminate()
        with OtherPlugin(gpus.node, names.VCUDA_CORE, *[f"{UUIDS[0]}-{number}" for number in range(40)]):
            gpus.agent.wait_offered(names.VCUDA_CORE, 40)
            with gpus.webhook.unregistered():
                run_foreign(gpus, space, "hami", ForeignPod({"core": 30}, {}, 0))
        gpus.agent.start()
        gpus.cluster.wait_until(
            lambda: f"pods of this node ({space}/hami)" in not_offered_events(gpus), what="a NotOffered event"
        )
        gpus.agent.wait_offered(names.VCUDA_CORE, 30 + 60)  # what this pod and gpu-manager's pod use
    gpus.agent.wait_offered(names.VCUDA_CORE, CORES)
