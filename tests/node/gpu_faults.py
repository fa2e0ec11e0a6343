"""What happens to a node with GPUs: its programs are killed and started again, at moments that hurt."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from devcluster.build.binaries import program_path
from devcluster.nodes import containerd
from devcluster.nodes.node import RealNode
from devcluster.objects import Object
from deviceplugin.kubelet.messages import ListedDevices
from deviceplugin.kubelet.pod_resources import PodResources
from halfcard import names
from tests.cluster.pods import get_pod

from .gpu_cluster import GpuCluster

_FAILED: Final = "halfcard_agent_failed_admissions_total"
_WAITING: Final = re.compile(rf"^\S+\s+ESTAB\s+[1-9]\d*\s.*{names.KUBELET_PLUGINS}/hc-", re.MULTILINE)
"""A connection of ours on which something came that was not read yet."""

_REGISTRATION: Final = re.compile(r'^\w(\d{4} [\d:.]+).*Got registration request.*resourceName="(\S+)"', re.MULTILINE)


# --- kubelet and the runtime ------------------------------------------------------------------------------------------


def restart_kubelet(gpus: GpuCluster) -> None:
    gpus.node.kubelet.kill()
    gpus.node.kubelet.start()
    gpus.node.wait_healthy()


def restart_containerd(gpus: GpuCluster) -> None:
    gpus.node.containerd.kill()
    gpus.node.containerd.start()


def kill_container(node: RealNode, pod: Object, container: str) -> None:
    """Its process, as if it had crashed; kubelet starts it again."""
    statuses = [*pod["status"]["containerStatuses"], *pod["status"].get("initContainerStatuses", ())]
    runtime_id = next(each["containerID"] for each in statuses if each["name"] == container)
    _ctr(node, "task", "kill", "--signal=SIGKILL", runtime_id.removeprefix("containerd://"))


def kill_sandbox(node: RealNode, pod: Object) -> None:
    """What holds its containers together: kubelet starts them all over, the init containers first."""
    uid = pod["metadata"]["uid"]
    theirs = f'labels."io.kubernetes.pod.uid"=={uid},labels."io.cri-containerd.kind"==sandbox'
    (sandbox,) = _ctr(node, "containers", "list", "--quiet", theirs).split()
    _ctr(node, "task", "kill", "--signal=SIGKILL", sandbox)


def _ctr(node: RealNode, *arguments: str) -> str:
    client = (str(program_path("ctr")), f"--address={containerd.SOCKET}", "--namespace=k8s.io")
    done = node.run(*client, *arguments)
    assert done.code == 0, done.stderr
    return done.stdout


def wait_restarted(gpus: GpuCluster, pod: Object, container: str) -> Object:
    """The pod, once its container runs anew."""
    metadata = pod["metadata"]

    def run(found: Object) -> tuple[str, bool]:
        status = next(each for each in found["status"]["containerStatuses"] if each["name"] == container)
        return status.get("containerID", ""), "running" in status["state"]

    was = run(pod)[0]

    def is_back() -> bool:
        now = run(get_pod(gpus.cluster, metadata["namespace"], metadata["name"]))
        return now[1] and now[0] != was

    gpus.cluster.wait_until(is_back, what=f"{container} of {metadata['name']} to run again", seconds=60)
    found: Object = get_pod(gpus.cluster, metadata["namespace"], metadata["name"])
    return found


# --- the agent --------------------------------------------------------------------------------------------------------


def restart_agent(gpus: GpuCluster) -> None:
    gpus.agent.restart()


def kill_agent(gpus: GpuCluster) -> None:
    gpus.agent.kill()
    gpus.agent.start()


def kill_agent_in_prestart(gpus: GpuCluster) -> None:
    """Right after it wrote a slot, while others wait for theirs; where nobody starts any more, just so."""
    known = slots(gpus.node)
    try:
        gpus.cluster.wait_until(lambda: not slots(gpus.node) <= known, what="a new slot", seconds=3)
    finally:
        kill_agent(gpus)


def slots(node: RealNode) -> frozenset[str]:
    folder = node.path(f"/run/cdi/.{names.OWN_DOMAIN}")
    return frozenset(each.name for each in folder.iterdir()) if folder.is_dir() else frozenset()


def in_allocate(gpus: GpuCluster) -> bool:
    """Whether kubelet has asked an agent that is paused."""
    return _WAITING.search(gpus.node.run("ss", "-xnH").stdout) is not None


def failed_admissions(gpus: GpuCluster) -> int:
    """As the agent counts them."""
    families = text_string_to_metric_families(gpus.agent.get(names.METRICS_PATH)[1])
    samples = (sample for family in families for sample in family.samples if sample.name == _FAILED)
    return int(sum(sample.value for sample in samples))


# --- what is left -----------------------------------------------------------------------------------------------------


def held(node: RealNode) -> tuple[ListedDevices, ...]:
    async def asked() -> tuple[ListedDevices, ...]:
        pod_resources = PodResources(node.pod_resources)
        try:
            return await pod_resources.listed_devices()
        finally:
            await pod_resources.close()

    return asyncio.run(asked())


def leftovers(node: RealNode) -> list[str]:
    """Files of slots, and ids that somebody holds."""
    folders = (names.CDI_FOLDER + "/", f"{names.STATE_FOLDER}/slots")
    files = node.run("find", *folders, "-not", "-type", "d").stdout.split()
    below = node.run("find", folders[1], "-mindepth", "1").stdout.split()
    return [*files, *below, *map(str, held(node))]


# --- times ------------------------------------------------------------------------------------------------------------


def registrations(log: Path, since: float) -> dict[str, float]:
    """When kubelet was first told of each resource after a moment, by its own log."""
    found: dict[str, float] = {}
    for stamp, resource in _REGISTRATION.findall(log.read_text(errors="replace")):
        at = _moment(stamp)
        if at >= since:
            found.setdefault(resource, at)
    return found


def _moment(stamp: str) -> float:
    """Of month, day and time of day in the words of klog, by the clock of this machine."""
    year = datetime.now().astimezone().year
    return datetime.strptime(f"{year}{stamp}", "%Y%m%d %H:%M:%S.%f").astimezone().timestamp()


def events_of(gpus: GpuCluster) -> list[tuple[str, str]]:
    """Of the node: reason and message."""
    found: Iterable[Object] = gpus.cluster.request("GET", "/api/v1/namespaces/default/events").must()["items"]
    return [(each["reason"], each["message"]) for each in found if each["involvedObject"].get("name") == gpus.node.name]


def condition(gpus: GpuCluster) -> tuple[str, str, str]:
    """Status, reason and message of our condition of the node."""
    node = gpus.cluster.request("GET", f"/api/v1/nodes/{gpus.node.name}").must()
    conditions = node["status"]["conditions"]
    found: Object = next((each for each in conditions if each["type"] == names.CARDS_CONDITION), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")
