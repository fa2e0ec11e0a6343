"""Faults on a node with GPUs: its programs are killed and restarted, also in the middle of a call."""

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
_UNREAD: Final = re.compile(rf"^\S+\s+ESTAB\s+[1-9]\d*\s.*{names.KUBELET_PLUGINS}/hc-", re.MULTILINE)
"""A connection to the agent that has unread data."""

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
    """Kills the process of a container, as if it had crashed; kubelet restarts it."""
    statuses = [*pod["status"]["containerStatuses"], *pod["status"].get("initContainerStatuses", ())]
    runtime_id = next(each["containerID"] for each in statuses if each["name"] == container)
    _ctr(node, "task", "kill", "--signal=SIGKILL", runtime_id.removeprefix("containerd://"))


def kill_sandbox(node: RealNode, pod: Object) -> None:
    """Kills the sandbox of a pod: kubelet restarts all its containers, the init containers first."""
    uid = pod["metadata"]["uid"]
    chosen = f'labels."io.kubernetes.pod.uid"=={uid},labels."io.cri-containerd.kind"==sandbox'
    (sandbox,) = _ctr(node, "containers", "list", "--quiet", chosen).split()
    _ctr(node, "task", "kill", "--signal=SIGKILL", sandbox)


def _ctr(node: RealNode, *arguments: str) -> str:
    client = (str(program_path("ctr")), f"--address={containerd.SOCKET}", "--namespace=k8s.io")
    done = node.run(*client, *arguments)
    assert done.code == 0, done.stderr
    return done.stdout


def wait_restarted(gpus: GpuCluster, pod: Object, container: str) -> Object:
    """Returns the pod when its container has been restarted and runs."""
    metadata = pod["metadata"]

    def state(found: Object) -> tuple[str, bool]:
        status = next(each for each in found["status"]["containerStatuses"] if each["name"] == container)
        return status.get("containerID", ""), "running" in status["state"]

    before = state(pod)[0]

    def is_restarted() -> bool:
        now = state(get_pod(gpus.cluster, metadata["namespace"], metadata["name"]))
        return now[1] and now[0] != before

    gpus.cluster.wait_until(is_restarted, what=f"{container} of {metadata['name']} to run again", seconds=60)
    found: Object = get_pod(gpus.cluster, metadata["namespace"], metadata["name"])
    return found


# --- the agent --------------------------------------------------------------------------------------------------------


def restart_agent(gpus: GpuCluster) -> None:
    gpus.agent.restart()


def kill_agent(gpus: GpuCluster) -> None:
    gpus.agent.kill()
    gpus.agent.start()


def kill_agent_in_prestart(gpus: GpuCluster) -> None:
    """Kills the agent right after it wrote a slot; when no pod starts within 3 s, at that moment."""
    known = slots(gpus.node)
    try:
        gpus.cluster.wait_until(lambda: not slots(gpus.node) <= known, what="a new slot", seconds=3)
    finally:
        kill_agent(gpus)


def slots(node: RealNode) -> frozenset[str]:
    folder = node.path(f"/run/cdi/.{names.OWN_DOMAIN}")
    return frozenset(each.name for each in folder.iterdir()) if folder.is_dir() else frozenset()


def is_call_pending(gpus: GpuCluster) -> bool:
    """Returns whether a call of kubelet waits for an agent that is paused."""
    return _UNREAD.search(gpus.node.run("ss", "-xnH").stdout) is not None


def failed_admissions(gpus: GpuCluster) -> int:
    """The agent's own count."""
    families = text_string_to_metric_families(gpus.agent.get(names.METRICS_PATH, gpus.agent.token())[1])
    samples = (sample for family in families for sample in family.samples if sample.name == _FAILED)
    return int(sum(sample.value for sample in samples))


# --- leftovers --------------------------------------------------------------------------------------------------------


def allocated_devices(node: RealNode) -> tuple[ListedDevices, ...]:
    async def listed() -> tuple[ListedDevices, ...]:
        pod_resources = PodResources(node.pod_resources)
        try:
            return await pod_resources.listed_devices()
        finally:
            await pod_resources.close()

    return asyncio.run(listed())


def leftovers(node: RealNode) -> list[str]:
    """Files of slots, and device ids that kubelet lists as allocated."""
    folders = (names.CDI_FOLDER + "/", f"{names.STATE_FOLDER}/slots")
    files = node.run("find", *folders, "-not", "-type", "d").stdout.split()
    below = node.run("find", folders[1], "-mindepth", "1").stdout.split()
    return [*files, *below, *map(str, allocated_devices(node))]


# --- times ------------------------------------------------------------------------------------------------------------


def registrations(log: Path, since: float) -> dict[str, float]:
    """When each resource was first registered at kubelet after `since`, by kubelet's log."""
    found: dict[str, float] = {}
    for stamp, resource in _REGISTRATION.findall(log.read_text(errors="replace")):
        at = _timestamp(stamp)
        if at >= since:
            found.setdefault(resource, at)
    return found


def _timestamp(stamp: str) -> float:
    """Reads a timestamp of klog, which has no year and no time zone."""
    year = datetime.now().astimezone().year
    return datetime.strptime(f"{year}{stamp}", "%Y%m%d %H:%M:%S.%f").astimezone().timestamp()


def events_of(gpus: GpuCluster) -> list[tuple[str, str]]:
    """Reason and message of each Event of the node."""
    found: Iterable[Object] = gpus.cluster.request("GET", "/api/v1/namespaces/default/events").must()["items"]
    return [(each["reason"], each["message"]) for each in found if each["involvedObject"].get("name") == gpus.node.name]


def condition(gpus: GpuCluster) -> tuple[str, str, str]:
    """Status, reason and message of Halfcard's condition of the node."""
    node = gpus.cluster.request("GET", f"/api/v1/nodes/{gpus.node.name}").must()
    conditions = node["status"]["conditions"]
    found: Object = next((each for each in conditions if each["type"] == names.CARDS_CONDITION), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")
