"""All dialects on one real node: each container gets what was recorded for it, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from devcluster.objects import Object
from halfcard import names
from tests.builders import PodBuilder, pod
from tests.cluster.agent import card_device
from tests.cluster.pods import wait_for_phase
from tests.cluster.site import cards_of
from tests.nvml.stand_in import StandInProcess, stand_in_cards

from .gpu_cluster import GpuCluster, gpu_cluster

T4_MIB: Final = 15109
NAMESPACE: Final = "dialects"
SLICES: Final = "time-slicing-config"
SHARED_FILES: Final = frozenset({"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"})
CUSTOM: Final = "gpu.example.com"
ALL_RESOURCES: Final = {
    "node_resources": [
        names.VCUDA_CORE,
        names.VCUDA_MEMORY,
        names.TUYA + names.VCUDA_MEMORY_SUFFIX,
        names.TUYA_SGPU,
        names.ALIYUN_GPU_MEM,
        names.VOLCANO_GPU_MEMORY,
        names.VOLCANO_GPU_NUMBER,
        names.NVIDIA_GPU,
    ],
    "time_slicing": {"config": f"{names.NAMESPACE}/{SLICES}", "default": "renamed"},
    "hami_device_split": 4,
}
RENAMED_SLICES: Final = """\
version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""
OTHER_SETTINGS: Final = {
    "aliyun_memory_unit": "MiB",
    "vcuda_prefixes": [{"prefix": CUSTOM}],
    "node_resources": [names.ALIYUN_GPU_MEM, CUSTOM + names.VCUDA_CORE_SUFFIX, CUSTOM + names.VCUDA_MEMORY_SUFFIX],
    "evict_for_misuse": True,
}


WITH_CORE_LIMIT: Final = {"core", f"{CUSTOM}/vcuda-core"}
"""Requests in dialects with a core limit; the webhook sets it to the share."""


@dataclass(frozen=True)
class Case:
    """The request of a container, and what it gets of each of its cards; None means no limit."""

    asks: Mapping[str, Any]
    cards: int = 1
    cores: int | None = None
    mib: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def pod(self, name: str) -> PodBuilder:
        return pod(name).asks(**self.asks)


CASES: Final = {
    "tencent-share": Case({"core": 30, "memory": 10}, cores=30, mib=2560),
    "tencent-cards": Case({"core": 200, "memory": 118}, cards=2),
    "tuya-memory": Case({"tuya_memory": 20}, mib=5120),
    "tuya-halves": Case({"sgpu": 2}, cards=2, mib=T4_MIB // 2),
    "aliyun-gib": Case(
        {"gpu_mem": 3},
        mib=3072,
        env={names.ALIYUN_CARD_TOTAL: "14", names.ALIYUN_POD_TOTAL: "3", names.ALIYUN_CONTAINER_VARIABLE: "3"},
    ),
    "volcano-memory": Case({"gpu_memory": 2048}, mib=2048, env={"CUDA_DEVICE_MEMORY_LIMIT_0": "2048m"}),
    "volcano-number": Case({"gpu_number": 1}),
    "nvidia-card": Case({"gpu": 1}),
    "nvidia-slice": Case({"gpu_shared": 1}),
    "hami-share": Case(
        {"gpu": 1, "gpumem": 3000, "gpucores": 40}, cores=40, mib=3000, env={names.CUDA_CORES_VARIABLE: "40"}
    ),
}
OTHER_CASES: Final = {
    "aliyun-mib": Case({"gpu_mem": 3000}, mib=3000, env={names.ALIYUN_CARD_TOTAL: str(T4_MIB)}),
    "own-share": Case({f"{CUSTOM}/vcuda-core": 25, f"{CUSTOM}/vcuda-memory": 8}, cores=25, mib=2048),
    "own-card": Case({f"{CUSTOM}/vcuda-core": 100, f"{CUSTOM}/vcuda-memory": 59}),
}


def run_all(gpus: GpuCluster, space: str, cases: Mapping[str, Case]) -> dict[str, Object]:
    """Creates all pods at once, and returns them when they run."""
    for name, case in cases.items():
        gpus.create(space, case.pod(name))
    return {name: wait_for_phase(gpus.cluster, space, name, "Running") for name in cases}


def check(gpus: GpuCluster, running: Object, case: Case) -> None:
    """The container got the cards that were recorded and the limits that it requested."""
    (recorded,) = cards_of(running).values()
    report = gpus.report(running)
    assert report.cards == tuple(recorded)
    assert len(set(recorded)) == case.cards
    minors = {card.uuid: card.minor for card in gpus.agent.driver.cards}
    assert report.devices == SHARED_FILES | {f"nvidia{minors[uuid]}" for uuid in recorded}
    assert report.limits["uid"] == running["metadata"]["uid"]
    assert report.limits["cards"] == [
        {
            "index": minors[uuid],
            "uuid": uuid,
            "cores_pct": case.cores,
            "cores_limit_pct": case.cores if case.asks.keys() & WITH_CORE_LIMIT else None,
            "memory_mib": case.mib,
        }
        for uuid in recorded
    ]
    assert report.env.items() >= case.env.items()
    for uuid in recorded:
        assert gpus.device(running, minors[uuid]) == card_device(minors[uuid])


# --- one installation with nearly all dialects -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed(gpus: GpuCluster) -> Iterator[dict[str, Object]]:
    """A pod for each case, all on one node with ten cards."""
    config = {
        "metadata": {"name": SLICES},
        "data": {"renamed": RENAMED_SLICES},
        "apiVersion": "v1",
        "kind": "ConfigMap",
    }
    gpus.cluster.client.apply(gpus.cluster.admin, f"/api/v1/namespaces/{names.NAMESPACE}/configmaps", config)
    with gpus.reconfigured(stand_in_cards(10), ALL_RESOURCES) as agent, gpus.space(NAMESPACE) as space:
        agent.wait_offered(names.NVIDIA_GPU_SHARED, 40)
        agent.wait_offered(names.VOLCANO_GPU_MEMORY, 10 * T4_MIB)
        yield run_all(gpus, space, CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_container_gets_the_recorded_cards_and_the_limits_of_its_dialect(
    gpus: GpuCluster, mixed: dict[str, Object], name: str
) -> None:
    check(gpus, mixed[name], CASES[name])


def test_whole_cards_and_halves_share_no_card_with_other_dialects(mixed: dict[str, Object]) -> None:
    cards = {name: {uuid for uuids in cards_of(each).values() for uuid in uuids} for name, each in mixed.items()}
    alone = ("tencent-cards", "tuya-halves", "volcano-number", "nvidia-card", "nvidia-slice")
    for name in alone:
        assert all(cards[name].isdisjoint(cards[other]) for other in cards if other != name), name


def test_the_webhook_adds_slots_only_to_requests_in_mib(mixed: dict[str, Object]) -> None:
    with_slots = {name for name, each in mixed.items() if names.SLOT in _limits(each)}
    assert with_slots == {"volcano-memory"}


def _limits(running: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = running["spec"]["containers"][0]["resources"]["limits"]
    return found


@pytest.mark.parametrize(
    "script",
    [f"echo '{{}}' > {names.LIMITS_FILE}", f"rm {names.LIMITS_FILE}", f"chmod 666 {names.LIMITS_FILE}"],
    ids=["write", "remove", "chmod"],
)
def test_a_container_cannot_change_its_limits_file(gpus: GpuCluster, mixed: dict[str, Object], script: str) -> None:
    before = gpus.execute(mixed["tencent-share"], f"cat {names.LIMITS_FILE}").stdout
    assert gpus.execute(mixed["tencent-share"], script).code != 0
    assert gpus.execute(mixed["tencent-share"], f"cat {names.LIMITS_FILE}").stdout == before


def test_a_pod_without_a_gpu_request_gets_no_card(gpus: GpuCluster, space: str) -> None:
    report = gpus.report(gpus.run(space, pod("plain").container()))
    assert report.cards in {("",), (names.SEES_NOTHING,)}
    assert report.devices == {"nvidia*"}  # the pattern itself: there is no such file
    assert report.limits == {}


def test_visible_devices_in_a_pod_are_overridden_where_the_webhook_is_not_called(gpus: GpuCluster) -> None:
    env = [{"name": names.VISIBLE_DEVICES, "value": "all"}]
    built = pod("greedy").container(limits={names.VCUDA_CORE: 10, names.VCUDA_MEMORY: 4}, env=env)
    with gpus.space(names.KUBE_SYSTEM) as space:
        running = gpus.run(space, built)
        assert running["spec"]["containers"][0]["env"] == env
        assert gpus.report(running).cards == tuple(cards_of(running)["containers-0"])


# --- another installation: gpushare in MiB and a custom domain ------------------------------------------------------


@pytest.fixture(scope="module")
def other_installation() -> Iterator[GpuCluster]:
    resources = [CUSTOM + names.VCUDA_CORE_SUFFIX, CUSTOM + names.VCUDA_MEMORY_SUFFIX]
    with gpu_cluster(cards=stand_in_cards(2), settings=OTHER_SETTINGS, resources=resources) as running:
        running.agent.wait_offered(resources[0], 200)
        running.agent.wait_offered(names.ALIYUN_GPU_MEM, 2 * T4_MIB)
        yield running


def test_the_settings_enable_gpushare_in_mib_and_a_custom_domain(other_installation: GpuCluster) -> None:
    with other_installation.space(NAMESPACE) as space:
        for name, running in run_all(other_installation, space, OTHER_CASES).items():
            check(other_installation, running, OTHER_CASES[name])
            assert (names.SLOT in _limits(running)) == (name == "aliyun-mib")


# --- the same installation evicts pods that misuse cards --------------------------------------------------------------


def _let_the_extender_evict(gpus: GpuCluster) -> None:
    """Grants what the chart grants with the setting."""
    role, account = "evicts-misuse", f"--serviceaccount={names.NAMESPACE}:{names.EXTENDER_SERVICE}"
    rights = ("--verb=create,delete", "--resource=pods,pods/eviction")
    for made in (("clusterrole", role, *rights), ("clusterrolebinding", role, f"--clusterrole={role}", account)):
        assert gpus.cluster.kubectl("create", *made).code == 0


def _forbid_evictions(gpus: GpuCluster, space: str) -> None:
    budget = {"metadata": {"name": "all"}, "spec": {"maxUnavailable": 0, "selector": {}}}
    gpus.cluster.request("POST", f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets", budget).must()


def test_pods_that_take_what_they_were_not_granted_are_evicted_and_their_neighbour_stays(
    other_installation: GpuCluster,
) -> None:
    gpus, share = other_installation, {names.ALIYUN_GPU_MEM: 1024}
    _let_the_extender_evict(gpus)
    with gpus.space("misuse") as space:
        _forbid_evictions(gpus, space)
        modest, greedy = (gpus.run(space, pod(name).container(limits=share)) for name in ("modest", "greedy"))
        stranger = gpus.run(space, pod("stranger").container())
        used = {gpus.first_process(modest): 900, gpus.first_process(greedy): 9216, gpus.first_process(stranger): 300}
        (card,) = {card for running in (modest, greedy) for cards in cards_of(running).values() for card in cards}
        processes = [StandInProcess(pid, memory_mib=mib) for pid, mib in used.items()]
        gpus.agent.driver.processes(card, *processes)
        evicted = {greedy["metadata"]["name"], stranger["metadata"]["name"]}
        gpus.cluster.wait_until(lambda: _ending(gpus, space) == evicted, what="both to be evicted", seconds=60)
        events = gpus.cluster.request("GET", f"/api/v1/namespaces/{space}/events").must()["items"]
    gpus.agent.driver.processes(card)
    reasons = {each["reason"]: each["involvedObject"]["name"] for each in events if each["reason"].startswith("Card")}
    assert reasons == {"CardMemoryExceeded": greedy["metadata"]["name"], "CardNotGranted": stranger["metadata"]["name"]}


def _ending(gpus: GpuCluster, space: str) -> set[str]:
    """Returns the names of the three pods that are deleted, or are being deleted."""
    pods = gpus.cluster.request("GET", f"/api/v1/namespaces/{space}/pods").must()["items"]
    staying = {each["metadata"]["name"] for each in pods if "deletionTimestamp" not in each["metadata"]}
    return {"modest", "greedy", "stranger"} - staying
