"""What native quota counts is no business of kubelet: it runs pods that ask for resources which its node never had."""

from __future__ import annotations

from halfcard import names
from tests.builders import pod

from .gpu_cluster import GpuCluster
from .told import differences


def test_a_pod_with_derived_resources_runs_on_a_real_kubelet(gpus: GpuCluster, space: str) -> None:
    """Through the stock scheduler as we ship it; our webhook is away, because it adds none in this cluster."""
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    asked = {names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 10, names.DERIVED_SHARES: 1, f"{names.DERIVED_SHARES}.T4": 1}
    with gpus.webhook.unregistered():
        running = gpus.run(space, pod("counted").container(limits=asked))
        assert differences(gpus.cluster, running) == []
    (container,) = running["spec"]["containers"]
    assert container["resources"]["requests"][names.DERIVED_SHARES] == "1"
    node = gpus.cluster.request("GET", f"/api/v1/nodes/{gpus.node.name}").must()["status"]
    assert not [each for each in (*node["capacity"], *node["allocatable"]) if each.startswith(names.DERIVED_GROUP)]
