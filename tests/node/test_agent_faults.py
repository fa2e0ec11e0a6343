"""Faults on a real node: running pods keep running, new pods wait or get their card, and Events say why.

Times are measured and printed; none of them fails a test.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import pytest

from devcluster.objects import Object
from halfcard import names
from tests.builders import PodBuilder, pod
from tests.cluster.pods import create_pod, get_pod, wait_for_phase
from tests.cluster.site import cards_of, refusal_of
from tests.nvml.build import LIBRARY, library_folder

from .container_report import END_OF_REPORT, REPORT_AND_RUN, reporting, wrong_cards
from .gpu_churn import container_ids, has_failed, is_running
from .gpu_cluster import GpuCluster
from .gpu_faults import (
    condition,
    events_of,
    failed_admissions,
    kill_container,
    kill_sandbox,
    leftovers,
    registrations,
    restart_kubelet,
    wait_restarted,
)
from .other_plugin import OtherPlugin

say: Final = print

ALL: Final = 200
"""The cores of the node's two cards."""

IGNORES_SIGTERM: Final = REPORT_AND_RUN.replace("trap 'exit 0' TERM", "trap '' TERM")
SERVED: Final = {names.VCUDA_CORE, names.VCUDA_MEMORY, names.TUYA_SGPU, names.NVIDIA_GPU}


def ignoring_sigterm(built: PodBuilder, **fields: Any) -> PodBuilder:
    """The same pod with containers that ignore SIGTERM."""
    spec = reporting(built).spec
    containers = [{**each, "command": ["sh", "-c", IGNORES_SIGTERM]} for each in spec["containers"]]
    return PodBuilder(built.metadata, {**spec, "containers": containers, **fields})


def force_delete(gpus: GpuCluster, namespace: str, name: str) -> None:
    done = gpus.cluster.kubectl("-n", namespace, "delete", "pod", name, "--grace-period=0", "--force")
    assert done.code == 0, done.stderr


def wait_described(gpus: GpuCluster, namespace: str, name: str, *words: str) -> None:
    """Waits until the output of `kubectl describe pod` contains all of `words`."""

    def description() -> str:
        return gpus.cluster.kubectl("-n", namespace, "describe", "pod", name).stdout

    gpus.cluster.wait_until(
        lambda: all(word in description() for word in words), what=f"{words} in the description of {name}", seconds=60
    )


def is_unchanged(gpus: GpuCluster, before: Object) -> bool:
    metadata = before["metadata"]
    now = get_pod(gpus.cluster, metadata["namespace"], metadata["name"])
    return is_running(now) and container_ids(now) == container_ids(before)


def card_of(pod: Object, container: str = "containers-0") -> str:
    (card,) = cards_of(pod)[container]
    return card


# --- pods -------------------------------------------------------------------------------------------------------------


def test_no_pod_starts_on_a_card_that_containers_of_a_deleted_pod_still_use(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    old = ignoring_sigterm(pod("old").asks(core=200), terminationGracePeriodSeconds=300)
    outlived = wait_for_phase(gpus.cluster, space, create_pod(gpus.cluster, space, old.manifest), "Running")
    force_delete(gpus, space, "old")
    gpus.create(space, pod("new").asks(core=60, memory=10))
    wait_described(gpus, space, "new", f"is used by containers of {space}/old, which still run")
    assert not is_running(get_pod(gpus.cluster, space, "new"))
    kill_container(gpus.node, outlived, "containers-0")
    started = wait_for_phase(gpus.cluster, space, "new", "Running")
    assert wrong_cards(gpus.cluster, started) == []


def test_a_pod_with_the_name_of_a_deleted_one_that_still_runs_gets_its_own_card(gpus: GpuCluster, space: str) -> None:
    """As with a StatefulSet's pod that was deleted by force: kubelet uses the same name for both."""
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    old = ignoring_sigterm(pod("web-0").asks(core=60, memory=10), terminationGracePeriodSeconds=300)
    outlived = wait_for_phase(gpus.cluster, space, create_pod(gpus.cluster, space, old.manifest), "Running")
    force_delete(gpus, space, "web-0")
    gpus.create(space, pod("web-0").asks(core=60, memory=10))
    gpus.cluster.wait_until(
        lambda: names.PLACEMENT in (get_pod(gpus.cluster, space, "web-0")["metadata"].get("annotations") or {}),
        what="the new web-0 to be placed",
    )
    if card_of(get_pod(gpus.cluster, space, "web-0")) == card_of(outlived):
        wait_described(gpus, space, "web-0", "which still run")
        kill_container(gpus.node, outlived, "containers-0")
    started = wait_for_phase(gpus.cluster, space, "web-0", "Running")
    assert wrong_cards(gpus.cluster, started) == []
    if card_of(started) != card_of(outlived):
        kill_container(gpus.node, outlived, "containers-0")


def test_successive_pods_with_one_stateful_set_name_get_their_own_cards(gpus: GpuCluster, space: str) -> None:
    path = f"/apis/apps/v1/namespaces/{space}/statefulsets"
    template = reporting(pod("web").asks(core=60, memory=10)).labelled({"app": "web"})
    spec = {
        "serviceName": "web",
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": dict(template.spec)},
    }
    item = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}
    gpus.cluster.request("POST", path, item).must()
    first = wait_running(gpus, space, "web-0")
    assert wrong_cards(gpus.cluster, first) == []
    scale(gpus, f"{path}/web", 0)
    wait_deleted(gpus, space, "web-0")
    gpus.run(space, pod("between").asks(core=60, memory=10))
    scale(gpus, f"{path}/web", 1)
    second = wait_running(gpus, space, "web-0")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert wrong_cards(gpus.cluster, second) == []
    gpus.cluster.request("DELETE", f"{path}/web").must()


def wait_running(gpus: GpuCluster, namespace: str, name: str) -> Object:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    gpus.cluster.wait_until(
        lambda: (found := gpus.cluster.request("GET", path)).ok and is_running(found.body),
        what=f"{name} to run",
        seconds=60,
    )
    found: Object = get_pod(gpus.cluster, namespace, name)
    return found


def wait_deleted(gpus: GpuCluster, namespace: str, name: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    gpus.cluster.wait_until(
        lambda: gpus.cluster.request("GET", path).status == 404, what=f"{name} to be deleted", seconds=60
    )


def scale(gpus: GpuCluster, path: str, replicas: int) -> None:
    gpus.cluster.client.merge(gpus.cluster.admin, path, {"spec": {"replicas": replicas}})


def test_pods_that_failed_while_the_agent_was_down_are_counted(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    gpus.agent.kill()
    early = [gpus.create(space, pod(f"early-{number}").asks(core=10, memory=2)) for number in range(3)]

    def early_pods() -> list[Object]:
        return [get_pod(gpus.cluster, space, name) for name in early]

    def decided() -> bool:
        """Until kube-scheduler has tried a pod, it may still get the node."""
        return all(has_failed(each) or refusal_of(each) for each in early_pods())

    gpus.cluster.wait_until(decided, what="each pod to fail or to be unschedulable")
    gpus.agent.start()
    failed = sum(map(has_failed, early_pods()))
    say(f"{failed} of {len(early)} pods that were created without an agent failed at kubelet")
    gpus.cluster.wait_until(lambda: failed_admissions(gpus) == failed, what=f"{failed} failed pods to be counted")
    gpus.cluster.wait_until(
        lambda: all(has_failed(each) or is_running(each) for each in early_pods()), what="the others to run", seconds=60
    )
    assert sum(map(has_failed, early_pods())) == failed


def test_each_container_gets_its_cards_again_after_its_sandbox_was_killed(gpus: GpuCluster, space: str) -> None:
    built = pod("again").init(core=30, memory=10).sidecar(core=10, memory=2).asks(core=30, memory=10)
    before = gpus.run(space, built)
    reports = {name: gpus.report(before, name) for name in cards_of(before)}
    kill_sandbox(gpus.node, before)
    after = wait_restarted(gpus, before, "containers-0")
    assert wrong_cards(gpus.cluster, after) == []
    assert {name: gpus.report(after, name) for name in reports} == reports


# --- cards ------------------------------------------------------------------------------------------------------------


def test_a_card_that_fell_off_the_bus_gets_no_pods_until_it_recovers(gpus: GpuCluster, space: str) -> None:
    driver = gpus.agent.driver
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    unaffected = gpus.run(space, pod("stays").asks(core=30, memory=10))
    failed_card = card_of(unaffected)
    began = time.monotonic()
    driver.xid(failed_card, 79)
    gpus.agent.wait_offered(names.VCUDA_CORE, 30 + 100)
    say(f"a card with Xid 79 is out of the node's totals after {time.monotonic() - began:.1f} s")
    gpus.cluster.wait_until(
        lambda: any(reason == "CardFailed" and "Xid 79" in message for reason, message in events_of(gpus)),
        what="CardFailed",
    )
    gpus.cluster.wait_until(lambda: condition(gpus)[:2] == ("False", "CardsOutOfOrder"), what="the condition")
    assert "Xid 79" in condition(gpus)[2]
    elsewhere = gpus.run(space, pod("elsewhere").asks(core=30, memory=10))
    assert card_of(elsewhere) != failed_card
    assert wrong_cards(gpus.cluster, elsewhere) == []
    waiting = gpus.create(space, pod("waiting").asks(core=80, memory=10))
    gpus.cluster.wait_until(
        lambda: "fits" in unschedulable_message(gpus, space, waiting), what="the pod to be unschedulable"
    )
    assert is_unchanged(gpus, unaffected)
    driver.fail(failed_card)
    gpus.cluster.wait_until(lambda: "lost" in condition(gpus)[2], what="the card to be lost during its reset")
    driver.recover(failed_card)
    began = time.monotonic()
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    say(f"it is back {time.monotonic() - began:.1f} s after its reset")
    gpus.cluster.wait_until(lambda: condition(gpus)[0] == "True", what="the condition to be True")
    gpus.cluster.wait_until(lambda: "CardRecovered" in dict(events_of(gpus)), what="CardRecovered")
    assert is_unchanged(gpus, unaffected)


def unschedulable_message(gpus: GpuCluster, namespace: str, name: str) -> str:
    found = refusal_of(get_pod(gpus.cluster, namespace, name))
    return f"{found} fits" if found else ""


def test_running_pods_survive_a_reload_of_the_driver(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    unaffected = gpus.run(space, pod("stays").asks(core=30, memory=10))
    gpus.agent.driver.unload()
    gpus.cluster.wait_until(lambda: condition(gpus)[:2] == ("False", "DriverUnavailable"), what="the condition")
    gpus.agent.wait_offered(names.VCUDA_CORE, 30)
    assert gpus.agent.get(names.READY_PATH)[0] == 503
    gpus.agent.driver.reload()
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    gpus.cluster.wait_until(lambda: condition(gpus)[0] == "True", what="the condition to be True")
    assert is_unchanged(gpus, unaffected)
    assert wrong_cards(gpus.cluster, gpus.run(space, pod("next").asks(core=30, memory=10))) == []


def test_an_agent_without_a_driver_waits_until_it_is_installed(gpus: GpuCluster, space: str) -> None:
    agent, folder = gpus.agent, gpus.agent.folder / "lib"
    folder.mkdir()
    environment: Mapping[str, str] = agent.program.environment
    agent.terminate()
    agent.program.environment = {**environment, "LD_LIBRARY_PATH": str(folder)}
    agent.program.start()
    gpus.cluster.wait_until(lambda: agent.get(names.READY_PATH)[0] == 503, what="the agent not to be ready")
    say(agent.get(names.READY_PATH)[1].strip())
    assert "driver" in agent.get(names.READY_PATH)[1]
    gpus.cluster.wait_until(lambda: condition(gpus)[:2] == ("False", "DriverUnavailable"), what="the condition")
    (folder / LIBRARY).symlink_to(library_folder() / LIBRARY)
    agent.wait_ready()
    agent.wait_offered(names.VCUDA_CORE, ALL)
    assert wrong_cards(gpus.cluster, gpus.run(space, pod("served").asks(core=30, memory=10))) == []
    agent.program.environment = environment
    agent.restart()


# --- programs ---------------------------------------------------------------------------------------------------------


def test_a_container_restarts_with_its_card_while_the_api_server_is_down(gpus: GpuCluster, space: str) -> None:
    before = gpus.run(space, pod("steady").init(core=30, memory=10).asks(core=30, memory=10))
    reports = gpus.report(before)
    uid = before["metadata"]["uid"]
    log = gpus.node.path(f"/var/log/pods/{space}_steady_{uid}/containers-0/1.log")
    gpus.cluster.components["kube-apiserver"].kill()
    try:
        gpus.agent.kill()
        gpus.agent.program.start()
        kill_container(gpus.node, before, "containers-0")
        gpus.cluster.wait_until(
            lambda: log.exists() and END_OF_REPORT in log.read_text().split(),
            what="the container to restart without the API server",
            seconds=60,
        )
    finally:
        gpus.cluster.components["kube-apiserver"].start()
        gpus.cluster.components.wait_ready("kube-apiserver")
        gpus.cluster.components.restart("kube-controller-manager")  # it retries ever more rarely
    gpus.agent.wait_ready()
    gpus.cluster.wait_until(lambda: not is_unchanged(gpus, before), what="the restart in the pod's status")
    wait_running(gpus, space, "steady")
    assert gpus.report(before) == reports


def test_all_resources_are_registered_again_after_a_kubelet_restart(gpus: GpuCluster, space: str) -> None:
    unaffected = gpus.run(space, pod("stays").init(core=30, memory=10).asks(core=30, memory=10))
    restart_kubelet(gpus)
    socket = gpus.node.device_plugins / "kubelet.sock"
    created = socket.stat().st_ctime
    gpus.cluster.wait_until(
        lambda: registrations(gpus.node.kubelet.log, created).keys() >= SERVED, what="all resources to be registered"
    )
    after = {name: at - created for name, at in registrations(gpus.node.kubelet.log, created).items()}
    say("registered after kubelet's socket was made:", *[f"{name} {1000 * s:.0f} ms" for name, s in after.items()])
    assert wrong_cards(gpus.cluster, gpus.run(space, pod("next").asks(core=30, memory=10))) == []
    assert is_unchanged(gpus, unaffected)


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
def test_containers_keep_running_while_the_agent_restarts(gpus: GpuCluster, space: str, end: str) -> None:
    unaffected = gpus.run(space, pod("stays").init(core=30, memory=10).asks(core=30, memory=10))
    signalled_at = time.time()
    if end == "SIGTERM":
        assert gpus.agent.terminate() == 0
    else:
        gpus.agent.kill()
    ended_at = time.time()
    gpus.agent.program.start()
    gpus.cluster.wait_until(
        lambda: registrations(gpus.node.kubelet.log, signalled_at).keys() >= SERVED,
        what="all resources to be registered",
    )
    registered_at = max(registrations(gpus.node.kubelet.log, signalled_at).values())
    say(f"{end}: ended after {ended_at - signalled_at:.2f} s")
    say(f"all resources registered {registered_at - signalled_at:.2f} s after the signal")
    gpus.agent.wait_ready()
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    assert is_unchanged(gpus, unaffected)
    assert wrong_cards(gpus.cluster, gpus.run(space, pod("next").asks(core=30, memory=10))) == []


def has_event(gpus: GpuCluster, reason: str, part: str) -> bool:
    return any(each == reason and part in message for each, message in events_of(gpus))


def test_after_a_mistake_in_the_settings_an_agent_continues_with_the_last_usable_ones(
    gpus: GpuCluster, space: str
) -> None:
    """It is not ready, so that a rollout stops at the first node, and it still gives pods their cards."""
    gpus.agent.configure({"packing": "tight"})
    gpus.agent.terminate()
    gpus.agent.program.start()
    try:
        gpus.cluster.wait_until(
            lambda: "unknown policy tight" in gpus.agent.get(names.READY_PATH)[1], what="the agent to name the mistake"
        )
        assert gpus.agent.get(names.READY_PATH)[0] == 503
        started = gpus.run(space, pod("started").asks(core=30, memory=10))
        assert wrong_cards(gpus.cluster, started) == []
    finally:
        gpus.agent.configure({})
        gpus.agent.restart()


def test_a_resource_of_another_plugin_is_not_advertised_until_that_plugin_ends(gpus: GpuCluster, space: str) -> None:
    agent = gpus.agent
    agent.wait_offered(names.VCUDA_CORE, ALL)
    agent.terminate()
    with OtherPlugin(gpus.node, names.VCUDA_CORE, "theirs-0", "theirs-1"):
        agent.wait_offered(names.VCUDA_CORE, 2)
        agent.program.start()
        gpus.cluster.wait_until(
            lambda: "theirs-0" in agent.get(names.READY_PATH)[1], what="readyz to name the other plugin"
        )
        gpus.cluster.wait_until(lambda: has_event(gpus, "NotOffered", "theirs-0"), what="NotOffered")
        assert agent.offered(names.VCUDA_CORE) == 2
        assert agent.offered(names.TUYA_SGPU) == 4
        gpus.run(space, pod("half").asks(sgpu=1))
    gpus.cluster.wait_until(lambda: has_event(gpus, "Offered", "theirs-0"), what="Offered")
    agent.wait_ready()
    began = time.monotonic()
    agent.wait_offered(names.VCUDA_CORE, 100)
    say(f"taken over {time.monotonic() - began:.1f} s after the agent was ready again")
    assert wrong_cards(gpus.cluster, gpus.run(space, pod("next").asks(core=30, memory=10))) == []


def test_no_slots_are_left_after_all_pods_are_deleted(gpus: GpuCluster, space: str) -> None:
    gpus.run(space, pod("one").init(core=30, memory=10).asks(core=30, memory=10))
    assert leftovers(gpus.node)
    gpus.cluster.request("DELETE", f"/api/v1/namespaces/{space}/pods/one").must()
    wait_deleted(gpus, space, "one")
    gpus.cluster.wait_until(lambda: not leftovers(gpus.node), what="all slots to be cleared", seconds=60)
