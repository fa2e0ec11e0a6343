"""One thing after another breaks on a real node: who runs goes on, who comes waits or gets his card, and all see why.

Times are measured and told; none of them fails a test.
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

from .gpu_churn import has_failed, is_running, runs_of
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
from .stranger import Stranger
from .told import STAY, differences, telling

say: Final = print

ALL: Final = 200
"""Of the node's two cards."""

DEAF: Final = STAY.replace("trap 'exit 0' TERM", "trap '' TERM")
SERVED: Final = {names.VCUDA_CORE, names.VCUDA_MEMORY, names.TUYA_SGPU, names.NVIDIA_GPU}


def deaf(built: PodBuilder, **fields: Any) -> PodBuilder:
    """The same pod; what asks its containers to end they do not hear."""
    spec = telling(built).spec
    containers = [{**each, "command": ["sh", "-c", DEAF]} for each in spec["containers"]]
    return PodBuilder(built.metadata, {**spec, "containers": containers, **fields})


def kill_by_force(gpus: GpuCluster, namespace: str, name: str) -> None:
    done = gpus.cluster.kubectl("-n", namespace, "delete", "pod", name, "--grace-period=0", "--force")
    assert done.code == 0, done.stderr


def describes(gpus: GpuCluster, namespace: str, name: str, *words: str) -> None:
    """Waits until `kubectl describe pod` says all that."""

    def described() -> str:
        return gpus.cluster.kubectl("-n", namespace, "describe", "pod", name).stdout

    gpus.cluster.wait_until(
        lambda: all(word in described() for word in words), what=f"describe to say {words}", seconds=60
    )


def same_run(gpus: GpuCluster, before: Object) -> bool:
    metadata = before["metadata"]
    now = get_pod(gpus.cluster, metadata["namespace"], metadata["name"])
    return is_running(now) and runs_of(now) == runs_of(before)


def card_of(pod: Object, container: str = "containers-0") -> str:
    (card,) = cards_of(pod)[container]
    return card


# --- pods -------------------------------------------------------------------------------------------------------------


def test_nobody_starts_beside_a_container_that_outlives_its_pod(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    old = deaf(pod("old").asks(core=200), terminationGracePeriodSeconds=300)
    left = wait_for_phase(gpus.cluster, space, create_pod(gpus.cluster, space, old.manifest), "Running")
    kill_by_force(gpus, space, "old")
    gpus.create(space, pod("new").asks(core=60, memory=10))
    describes(gpus, space, "new", f"is used by containers of {space}/old, which still run")
    assert not is_running(get_pod(gpus.cluster, space, "new"))
    kill_container(gpus.node, left, "containers-0")
    healed = wait_for_phase(gpus.cluster, space, "new", "Running")
    assert differences(gpus.cluster, healed) == []


def test_a_pod_that_has_the_name_of_one_that_goes_on_running_gets_its_own_card(gpus: GpuCluster, space: str) -> None:
    """As where a StatefulSet's pod was deleted by force: kubelet speaks of both by one name."""
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    old = deaf(pod("web-0").asks(core=60, memory=10), terminationGracePeriodSeconds=300)
    left = wait_for_phase(gpus.cluster, space, create_pod(gpus.cluster, space, old.manifest), "Running")
    kill_by_force(gpus, space, "web-0")
    gpus.create(space, pod("web-0").asks(core=60, memory=10))
    gpus.cluster.wait_until(
        lambda: names.PLACEMENT in (get_pod(gpus.cluster, space, "web-0")["metadata"].get("annotations") or {}),
        what="the new web-0 to be placed",
    )
    if card_of(get_pod(gpus.cluster, space, "web-0")) == card_of(left):
        describes(gpus, space, "web-0", "which still run")
        kill_container(gpus.node, left, "containers-0")
    healed = wait_for_phase(gpus.cluster, space, "web-0", "Running")
    assert differences(gpus.cluster, healed) == []
    if card_of(healed) != card_of(left):
        kill_container(gpus.node, left, "containers-0")


def test_pods_of_one_stateful_set_name_one_after_the_other_get_the_card_of_each(gpus: GpuCluster, space: str) -> None:
    path = f"/apis/apps/v1/namespaces/{space}/statefulsets"
    template = telling(pod("web").asks(core=60, memory=10)).labelled({"app": "web"})
    spec = {
        "serviceName": "web",
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": dict(template.spec)},
    }
    item = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}
    gpus.cluster.request("POST", path, item).must()
    first = running(gpus, space, "web-0")
    assert differences(gpus.cluster, first) == []
    scale(gpus, f"{path}/web", 0)
    gone(gpus, space, "web-0")
    gpus.run(space, pod("between").asks(core=60, memory=10))
    scale(gpus, f"{path}/web", 1)
    second = running(gpus, space, "web-0")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert differences(gpus.cluster, second) == []
    gpus.cluster.request("DELETE", f"{path}/web").must()


def running(gpus: GpuCluster, namespace: str, name: str) -> Object:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    gpus.cluster.wait_until(
        lambda: (found := gpus.cluster.request("GET", path)).ok and is_running(found.body),
        what=f"{name} to run",
        seconds=60,
    )
    found: Object = get_pod(gpus.cluster, namespace, name)
    return found


def gone(gpus: GpuCluster, namespace: str, name: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    gpus.cluster.wait_until(lambda: gpus.cluster.request("GET", path).status == 404, what=f"{name} to go", seconds=60)


def scale(gpus: GpuCluster, path: str, replicas: int) -> None:
    gpus.cluster.client.merge(gpus.cluster.admin, path, {"spec": {"replicas": replicas}})


def test_pods_that_come_while_no_agent_is_there_are_counted_when_it_is_back(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    gpus.agent.kill()
    early = [gpus.create(space, pod(f"early-{number}").asks(core=10, memory=2)) for number in range(3)]

    def met() -> list[Object]:
        return [get_pod(gpus.cluster, space, name) for name in early]

    def decided() -> bool:
        """One that the scheduler has not looked at yet may still get the node."""
        return all(has_failed(each) or refusal_of(each) for each in met())

    gpus.cluster.wait_until(decided, what="those with its node to fail, and all others to be refused")
    gpus.agent.start()
    failed = sum(map(has_failed, met()))
    say(f"{failed} of {len(early)} pods that came while the agent was away were failed by kubelet")
    gpus.cluster.wait_until(lambda: failed_admissions(gpus) == failed, what=f"{failed} failed pods to be counted")
    gpus.cluster.wait_until(
        lambda: all(has_failed(each) or is_running(each) for each in met()), what="the others to run", seconds=60
    )
    assert sum(map(has_failed, met())) == failed


def test_a_pod_that_starts_all_over_has_its_cards_in_each_container_again(gpus: GpuCluster, space: str) -> None:
    built = pod("again").init(core=30, memory=10).sidecar(core=10, memory=2).asks(core=30, memory=10)
    before = gpus.run(space, built)
    told = {name: gpus.ask(before, name) for name in cards_of(before)}
    kill_sandbox(gpus.node, before)
    after = wait_restarted(gpus, before, "containers-0")
    assert differences(gpus.cluster, after) == []
    assert {name: gpus.ask(after, name) for name in told} == told


# --- cards ------------------------------------------------------------------------------------------------------------


def test_a_card_that_falls_off_the_bus_gets_nothing_new_and_comes_back(gpus: GpuCluster, space: str) -> None:
    driver = gpus.agent.driver
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    stays = gpus.run(space, pod("stays").asks(core=30, memory=10))
    sick = card_of(stays)
    began = time.monotonic()
    driver.xid(sick, 79)
    gpus.agent.wait_offered(names.VCUDA_CORE, 30 + 100)
    say(f"a card with Xid 79 is out of the node's totals after {time.monotonic() - began:.1f} s")
    gpus.cluster.wait_until(
        lambda: any(reason == "CardFailed" and "Xid 79" in said for reason, said in events_of(gpus)), what="the Event"
    )
    gpus.cluster.wait_until(lambda: condition(gpus)[:2] == ("False", "CardsOutOfOrder"), what="the condition")
    assert "Xid 79" in condition(gpus)[2]
    elsewhere = gpus.run(space, pod("elsewhere").asks(core=30, memory=10))
    assert card_of(elsewhere) != sick
    assert differences(gpus.cluster, elsewhere) == []
    waiting = gpus.create(space, pod("waiting").asks(core=80, memory=10))
    gpus.cluster.wait_until(lambda: "fits" in refusal(gpus, space, waiting), what="it to wait")
    assert same_run(gpus, stays)
    driver.fail(sick)
    gpus.cluster.wait_until(lambda: "lost" in condition(gpus)[2], what="the card to be away for its reset")
    driver.recover(sick)
    began = time.monotonic()
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    say(f"it is back {time.monotonic() - began:.1f} s after its reset")
    gpus.cluster.wait_until(lambda: condition(gpus)[0] == "True", what="the condition to be well")
    gpus.cluster.wait_until(lambda: "CardRecovered" in dict(events_of(gpus)), what="the Event")
    assert same_run(gpus, stays)


def refusal(gpus: GpuCluster, namespace: str, name: str) -> str:
    found = refusal_of(get_pod(gpus.cluster, namespace, name))
    return f"{found} fits" if found else ""


def test_a_driver_that_is_reloaded_takes_nothing_from_who_runs(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    stays = gpus.run(space, pod("stays").asks(core=30, memory=10))
    gpus.agent.driver.unload()
    gpus.cluster.wait_until(lambda: condition(gpus)[:2] == ("False", "DriverUnavailable"), what="the condition")
    gpus.agent.wait_offered(names.VCUDA_CORE, 30)
    assert gpus.agent.get(names.READY_PATH)[0] == 503
    gpus.agent.driver.reload()
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    gpus.cluster.wait_until(lambda: condition(gpus)[0] == "True", what="the condition to be well")
    assert same_run(gpus, stays)
    assert differences(gpus.cluster, gpus.run(space, pod("next").asks(core=30, memory=10))) == []


def test_an_agent_on_a_node_without_a_driver_waits_and_serves_once_there_is_one(gpus: GpuCluster, space: str) -> None:
    agent, folder = gpus.agent, gpus.agent.folder / "lib"
    folder.mkdir()
    environment: Mapping[str, str] = agent.program.environment
    agent.terminate()
    agent.program.environment = {**environment, "LD_LIBRARY_PATH": str(folder)}
    agent.program.start()
    gpus.cluster.wait_until(lambda: agent.get(names.READY_PATH)[0] == 503, what="the agent to say that it waits")
    say(agent.get(names.READY_PATH)[1].strip())
    assert "driver" in agent.get(names.READY_PATH)[1]
    gpus.cluster.wait_until(lambda: condition(gpus)[:2] == ("False", "DriverUnavailable"), what="the condition")
    (folder / LIBRARY).symlink_to(library_folder() / LIBRARY)
    agent.wait_ready()
    agent.wait_offered(names.VCUDA_CORE, ALL)
    assert differences(gpus.cluster, gpus.run(space, pod("served").asks(core=30, memory=10))) == []
    agent.program.environment = environment
    agent.restart()


# --- programs ---------------------------------------------------------------------------------------------------------


def test_while_the_api_server_is_away_a_container_comes_back_with_its_card(gpus: GpuCluster, space: str) -> None:
    before = gpus.run(space, pod("steady").init(core=30, memory=10).asks(core=30, memory=10))
    told = gpus.ask(before)
    uid = before["metadata"]["uid"]
    log = gpus.node.path(f"/var/log/pods/{space}_steady_{uid}/containers-0/1.log")
    gpus.cluster.components["kube-apiserver"].kill()
    try:
        gpus.agent.kill()
        gpus.agent.program.start()
        kill_container(gpus.node, before, "containers-0")
        gpus.cluster.wait_until(
            lambda: log.exists() and "told" in log.read_text().split(),
            what="the container to come back without the API server",
            seconds=60,
        )
    finally:
        gpus.cluster.components["kube-apiserver"].start()
        gpus.cluster.components.wait_ready("kube-apiserver")
        gpus.cluster.components.restart("kube-controller-manager")  # which asks a server that was away ever more rarely
    gpus.agent.wait_ready()
    gpus.cluster.wait_until(lambda: not same_run(gpus, before), what="its restart to be told")
    running(gpus, space, "steady")
    assert gpus.ask(before) == told


def test_a_kubelet_that_starts_again_has_all_resources_at_once(gpus: GpuCluster, space: str) -> None:
    stays = gpus.run(space, pod("stays").init(core=30, memory=10).asks(core=30, memory=10))
    restart_kubelet(gpus)
    socket = gpus.node.device_plugins / "kubelet.sock"
    made = socket.stat().st_ctime
    gpus.cluster.wait_until(
        lambda: registrations(gpus.node.kubelet.log, made).keys() >= SERVED, what="all to be registered"
    )
    after = {name: at - made for name, at in registrations(gpus.node.kubelet.log, made).items()}
    say("registered after kubelet's socket was made:", *[f"{name} {1000 * s:.0f} ms" for name, s in after.items()])
    assert differences(gpus.cluster, gpus.run(space, pod("next").asks(core=30, memory=10))) == []
    assert same_run(gpus, stays)


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
def test_an_agent_that_ends_leaves_containers_alone_and_is_back_soon(gpus: GpuCluster, space: str, end: str) -> None:
    stays = gpus.run(space, pod("stays").init(core=30, memory=10).asks(core=30, memory=10))
    ended = time.time()
    if end == "SIGTERM":
        assert gpus.agent.terminate() == 0
    else:
        gpus.agent.kill()
    down = time.time()
    gpus.agent.program.start()
    gpus.cluster.wait_until(
        lambda: registrations(gpus.node.kubelet.log, ended).keys() >= SERVED, what="all to be registered"
    )
    back = max(registrations(gpus.node.kubelet.log, ended).values())
    say(f"{end}: ended after {down - ended:.2f} s, all resources registered {back - ended:.2f} s after the signal")
    gpus.agent.wait_ready()
    gpus.agent.wait_offered(names.VCUDA_CORE, ALL)
    assert same_run(gpus, stays)
    assert differences(gpus.cluster, gpus.run(space, pod("next").asks(core=30, memory=10))) == []


def is_told(gpus: GpuCluster, reason: str, part: str) -> bool:
    return any(each == reason and part in message for each, message in events_of(gpus))


def test_a_resource_that_another_plugin_serves_is_left_alone_until_it_goes(gpus: GpuCluster, space: str) -> None:
    agent = gpus.agent
    agent.wait_offered(names.VCUDA_CORE, ALL)
    agent.terminate()
    with Stranger(gpus.node, names.VCUDA_CORE, "theirs-0", "theirs-1"):
        agent.wait_offered(names.VCUDA_CORE, 2)
        agent.program.start()
        gpus.cluster.wait_until(lambda: "theirs-0" in agent.get(names.READY_PATH)[1], what="readyz to say so")
        gpus.cluster.wait_until(lambda: is_told(gpus, "NotOffered", "theirs-0"), what="the Event")
        assert agent.offered(names.VCUDA_CORE) == 2
        assert agent.offered(names.TUYA_SGPU) == 4
        gpus.run(space, pod("half").asks(sgpu=1))
    gpus.cluster.wait_until(lambda: is_told(gpus, "Offered", "theirs-0"), what="the Event of its end")
    agent.wait_ready()
    began = time.monotonic()
    agent.wait_offered(names.VCUDA_CORE, 100)
    say(f"taken over {time.monotonic() - began:.1f} s after the agent was ready again")
    assert differences(gpus.cluster, gpus.run(space, pod("next").asks(core=30, memory=10))) == []


def test_nothing_is_left_when_all_pods_are_gone(gpus: GpuCluster, space: str) -> None:
    gpus.run(space, pod("one").init(core=30, memory=10).asks(core=30, memory=10))
    assert leftovers(gpus.node)
    gpus.cluster.request("DELETE", f"/api/v1/namespaces/{space}/pods/one").must()
    gone(gpus, space, "one")
    gpus.cluster.wait_until(lambda: not leftovers(gpus.node), what="all slots to be cleared", seconds=60)
