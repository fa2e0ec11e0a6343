"""A node goes from another system's plugin to our agent and back, and nobody who runs there is touched.

The pages docs/from-*.md say what is seen here.
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
from tests.cluster.site import NOBODY, cards_of
from tests.nvml.stand_in import stand_in_cards

from .gpu_churn import runs_of
from .gpu_cluster import GpuCluster
from .gpu_faults import events_of, kill_container, restart_kubelet, wait_restarted
from .stranger import Stranger
from .told import differences

CARDS: Final = 4
UUIDS: Final = tuple(card.uuid for card in stand_in_cards(CARDS))
UNITS: Final = 15109 // 256
SLICES: Final = 4
CONFIG: Final = "time-slicing-config"
SLICED: Final = f"""\
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: {SLICES}
"""
OFFERED: Final = 100 * (CARDS - 1)
"""Per cent of cores: a card is sliced."""

SETTINGS: Final = {
    "node_resources": [names.VCUDA_CORE, names.VCUDA_MEMORY, names.ALIYUN_GPU_MEM, names.NVIDIA_GPU],
    "time_slicing": {"config": f"{names.NAMESPACE}/{CONFIG}", "default": "any"},
}


@dataclass(frozen=True)
class Theirs:
    """A pod as its own system's scheduler and plugin leave it: what it asks for, its record, and the card it is on."""

    asks: Mapping[str, Any]
    record: Mapping[str, str]
    card: int

    def pod(self, name: str) -> PodBuilder:
        return pod(name).asks(**self.asks).annotated(self.record)


BEFORE: Final = {
    "gaia": Theirs(
        {"core": 60, "memory": 20},
        {
            "tencent.com/predicate-gpu-idx-0": "3",
            "tencent.com/predicate-node": "gpu-a",
            "tencent.com/predicate-time": "1700000000000000000",
            "tencent.com/gpu-assigned": "true",
        },
        3,
    ),
    "ali": Theirs(
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
    "slice": Theirs({"gpu": 1}, {}, 1),
}


@contextmanager
def their_plugins(gpus: GpuCluster) -> Iterator[None]:
    """gpu-manager's, gpushare's and NVIDIA's with time slices, with ids as theirs are."""
    cores = [f"{names.VCUDA_CORE}-{number}" for number in range(100 * CARDS)]
    units = [f"{names.VCUDA_MEMORY}-268435456-{number}" for number in range(UNITS * CARDS)]
    gib = [f"{uuid}-_-{number}" for uuid in UUIDS for number in range(14)]
    slices = [f"{UUIDS[1]}::{number}" for number in range(SLICES)]  # kubelet takes any: here all are of one card
    with ExitStack() as stack:
        for resource, ids, card in (
            (names.VCUDA_CORE, cores, "3"),
            (names.VCUDA_MEMORY, units, "3"),
            (names.ALIYUN_GPU_MEM, gib, "2"),
            (names.NVIDIA_GPU, slices, UUIDS[1]),
        ):
            stack.enter_context(Stranger(gpus.node, resource, *ids, gives=partial(_always, card)))
        for resource, amount in ((names.VCUDA_CORE, 100 * CARDS), (names.ALIYUN_GPU_MEM, 14 * CARDS)):
            gpus.agent.wait_offered(resource, amount)
        gpus.agent.wait_offered(names.NVIDIA_GPU, SLICES)
        yield


def _always(card: str, _ids: Sequence[str]) -> str:
    return card


def run_theirs(gpus: GpuCluster, space: str, name: str, theirs: Theirs) -> Object:
    gpus.create(space, theirs.pod(name), nodeName=gpus.node.name, schedulerName=NOBODY)
    running: Object = wait_for_phase(gpus.cluster, space, name, "Running")
    return running


@dataclass(frozen=True)
class Moved:
    gpus: GpuCluster
    space: str
    before: Mapping[str, Object]

    def now(self, name: str) -> Object:
        found: Object = get_pod(self.gpus.cluster, self.space, name)
        return found

    def untouched(self) -> None:
        """Everybody runs in the very container as before, and nothing of what is written at them is different."""
        for name, was in self.before.items():
            now = self.now(name)
            assert (now["metadata"]["uid"], runs_of(now)) == (was["metadata"]["uid"], runs_of(was))
            assert [each["restartCount"] for each in now["status"]["containerStatuses"]] == [0]
            assert now["spec"] == was["spec"]
            assert _annotations(now).items() >= _annotations(was).items()


def _annotations(found: Object) -> dict[str, str]:
    return dict(found["metadata"].get("annotations") or {})


@pytest.fixture(scope="module")
def moved(gpus: GpuCluster) -> Iterator[Moved]:
    """The node is ours, and theirs run on."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG}, "data": {"any": SLICED}}
    gpus.cluster.client.apply(gpus.cluster.admin, f"/api/v1/namespaces/{names.NAMESPACE}/configmaps", config)
    with gpus.equipped(stand_in_cards(CARDS), SETTINGS) as agent, gpus.space("moved") as space:
        agent.terminate()
        with their_plugins(gpus):
            with gpus.webhook.unregistered():
                before = {name: run_theirs(gpus, space, name, theirs) for name, theirs in BEFORE.items()}
            agent.program.start()
            gpus.cluster.wait_until(
                lambda: f"{names.VCUDA_CORE} is served by another device plugin" in told(gpus),
                what="the agent to say so",
            )
        agent.wait_ready()
        agent.wait_offered(names.VCUDA_CORE, OFFERED)
        yield Moved(gpus, space, before)


def told(gpus: GpuCluster) -> str:
    return "\n".join(message for reason, message in events_of(gpus) if reason == "NotOffered")


def test_who_runs_is_not_touched_and_a_record_of_theirs_stays_as_it_is(moved: Moved) -> None:
    moved.untouched()
    for name in ("gaia", "ali"):
        assert _annotations(moved.now(name)) == _annotations(moved.before[name])


def test_the_card_of_a_slice_is_known_by_nvidias_id_and_recorded(moved: Moved) -> None:
    assert cards_of(moved.now("slice")) == {"containers-0": [UUIDS[1]]}
    shown = {
        card["name"]: [(each["name"], each["recorded"]) for each in card["pods"]]
        for card in moved.gpus.extender.inspect(moved.gpus.node.name)["cards"]
    }
    assert shown == {
        UUIDS[0]: [],
        UUIDS[1]: [("slice", True)],
        UUIDS[2]: [("ali", True)],
        UUIDS[3]: [("gaia", True)],
    }


def test_new_pods_in_their_words_get_what_is_free_beside_them(moved: Moved) -> None:
    gpus = moved.gpus
    with gpus.space("comers") as space:
        wanted = {
            "beside-gaia": (pod("beside-gaia").asks(core=40, memory=30).annotated(BINPACK), {UUIDS[3]}),
            "too-much-for-it": (pod("too-much-for-it").asks(core=50, memory=10), {UUIDS[0], UUIDS[2]}),
            "another-slice": (pod("another-slice").asks(gpu=1).annotated(BINPACK), {UUIDS[1]}),
        }
        for name, (built, cards) in wanted.items():
            running = gpus.run(space, built)
            assert differences(gpus.cluster, running) == []
            assert {each for found in cards_of(running).values() for each in found} <= cards, name
    moved.untouched()


BINPACK: Final = {names.ASK_POLICY: "binpack"}


def test_kubelet_starts_anew_and_nobody_is_touched(moved: Moved) -> None:
    restart_kubelet(moved.gpus)
    moved.gpus.agent.wait_ready()
    moved.untouched()


def test_back_with_their_plugins_nobody_is_touched_and_all_can_start(moved: Moved) -> None:
    gpus = moved.gpus
    with gpus.space("ours") as space:
        ours = gpus.run(space, pod("ours").asks(core=20, memory=4))
        gpus.agent.terminate()
        with their_plugins(gpus), gpus.webhook.unregistered():
            moved.untouched()
            assert runs_of(get_pod(gpus.cluster, space, "ours")) == runs_of(ours)
            again = run_theirs(gpus, space, "again", BEFORE["gaia"])
            assert gpus.ask(again).cards == ("3",)
            kill_container(gpus.node, ours, "containers-0")
            assert gpus.ask(wait_restarted(gpus, ours, "containers-0")).cards == tuple(cards_of(ours)["containers-0"])
    gpus.agent.start()
    moved.untouched()


def test_a_container_of_theirs_that_ends_starts_again_on_its_card(moved: Moved) -> None:
    """The last one: it is touched."""
    for name, theirs in BEFORE.items():
        kill_container(moved.gpus.node, moved.now(name), "containers-0")
        again = wait_restarted(moved.gpus, moved.now(name), "containers-0")
        sees = moved.gpus.execute(again, f"echo ${names.VISIBLE_DEVICES}").stdout.strip()
        assert sees in (str(theirs.card), UUIDS[theirs.card])
        assert cards_of(again)["containers-0"] == [UUIDS[1]] if name == "slice" else names.PLACEMENT not in again


def test_where_nobody_knows_a_pods_cards_nothing_more_is_offered_until_it_has_ended(moved: Moved) -> None:
    """As of HAMi, whose ids are counts and whose records are not read."""
    gpus = moved.gpus
    with gpus.space("unknown") as space:
        gpus.agent.terminate()
        with Stranger(gpus.node, names.VCUDA_CORE, *[f"{UUIDS[0]}-{number}" for number in range(40)]):
            gpus.agent.wait_offered(names.VCUDA_CORE, 40)
            with gpus.webhook.unregistered():
                run_theirs(gpus, space, "hami", Theirs({"core": 30}, {}, 0))
        gpus.agent.start()
        gpus.cluster.wait_until(lambda: f"pods of this node ({space}/hami)" in told(gpus), what="the agent to say so")
        gpus.agent.wait_offered(names.VCUDA_CORE, 30 + 60)  # what it holds, and gpu-manager's pod of before
    gpus.agent.wait_offered(names.VCUDA_CORE, OFFERED)
