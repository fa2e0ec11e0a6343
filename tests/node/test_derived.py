"""Kubelet ignores the derived resources of native quota: it runs pods that request them though no node has them."""

from __future__ import annotations

from halfcard import names
from tests.builders import pod

from .container_report import wrong_cards
from .gpu_cluster import GpuCluster


def test_a_pod_with_derived_resources_runs_on_a_real_kubelet(gpus: GpuCluster, space: str) -> None:
    """With the shipped configuration of kube-scheduler, and without the webhook, which adds none in this cluster."""
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    limits = {names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 10, names.DERIVED_SHARES: 1, f"{names.DERIVED_SHARES}.T4": 1}
    with gpus.webhook.unregistered():
        running = gpus.run(space, pod("counted").container(limits=limits))
        assert wrong_cards(gpus.cluster, running) == []
    (container,) = running["spec"]["containers"]
    assert container["resources"]["requests"][names.DERIVED_SHARES] == "1"
    node = gpus.cluster.request("GET", f"/api/v1/nodes/{gpus.node.name}").must()["status"]
    assert not [each for each in (*node["capacity"], *node["allocatable"]) if each.startswith(names.DERIVED_GROUP)]
