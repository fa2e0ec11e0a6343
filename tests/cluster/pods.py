"""Creates busybox pods for real nodes, waits for them and reads their logs."""

from __future__ import annotations

from typing import Any

from devcluster.cluster import Cluster
from devcluster.nodes.images import BUSYBOX
from devcluster.objects import Object
from devcluster.waiting import wait_until

_WITHIN_S = 60.0  # it takes one or two seconds; a busy machine is slow, not broken


def busybox_pod(name: str, script: str, *, node: str = "") -> Object:
    """Returns a pod that runs the script once, on the named node if one is given."""
    container = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", script]}
    spec: Object = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def create_pod(cluster: Cluster, namespace: str, pod: Object) -> str:
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod).must()
    name: str = pod["metadata"]["name"]
    return name


def get_pod(cluster: Cluster, namespace: str, name: str) -> Any:
    return cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}").must()


def wait_for_phase(cluster: Cluster, namespace: str, name: str, phase: str) -> Any:
    """Waits for Running, Succeeded or Failed, and returns the pod."""

    def reached() -> bool:
        return bool(get_pod(cluster, namespace, name)["status"]["phase"] == phase)

    def why() -> str:
        described = cluster.kubectl("describe", "pod", name, f"--namespace={namespace}")
        return f"{described.stdout}\n{cluster.components.log_tails()}"

    wait_until(reached, what=f"pod {namespace}/{name} to be {phase}", seconds=_WITHIN_S, details=why)
    return get_pod(cluster, namespace, name)


def pod_log(cluster: Cluster, namespace: str, name: str) -> str:
    """Returns the log of a pod, read through the API server from kubelet."""
    done = cluster.kubectl("logs", name, f"--namespace={namespace}")
    assert done.code == 0, done.stderr
    return done.stdout


def run_pod(cluster: Cluster, namespace: str, pod: Object) -> Any:
    """Creates it and waits until it runs."""
    return wait_for_phase(cluster, namespace, create_pod(cluster, namespace, pod), "Running")
