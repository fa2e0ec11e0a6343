"""What is there once Halfcard has been removed, as docs/install.md says it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Final

from cli.__main__ import main as halfcard
from devcluster.cluster import Cluster
from devcluster.nodes.node import RealNode
from devcluster.objects import Object
from halfcard import names
from tests.cluster.dump import Dump
from tests.cluster.manifests import resource_quota
from tests.docs.pages import ROOT

_LIMIT: Final = f"limits.{names.VCUDA_CORE}"
TWIN: Final = f"requests.{names.VCUDA_CORE}"
WRITTEN: Final = resource_quota("native", {_LIMIT: "900"})
"""As people write it; Kubernetes counts none of it, so that Halfcard adds the twin."""

_OWN: Final = names.NAMESPACE


def objects(tenants: str) -> list[str]:
    """That were not there before Halfcard, outside of the tenants' namespace."""
    return [
        f"APIService v1alpha1.{names.OWN_DOMAIN}",
        f"ConfigMap {_OWN} gpuquota.{tenants}.gpu",
        f"ConfigMap {_OWN} kube-root-ca.crt",
        f"CustomResourceDefinition clustergpuquotas.{names.OWN_DOMAIN}",
        f"CustomResourceDefinition gpuquotas.{names.OWN_DOMAIN}",
        f"Namespace {_OWN}",
        f"ServiceAccount {_OWN} default",
    ]


_SAID: Final = (names.INVENTORY, names.ANNOUNCED, names.AGENT_LABEL, names.MADE_UP_LABEL, names.CARDS_CONDITION)
_LABELS: Final = (
    names.NVIDIA_LABEL_COUNT,
    names.NVIDIA_LABEL_MEMORY,
    names.NVIDIA_LABEL_PRODUCT,
    names.NVIDIA_LABEL_REPLICAS,
)
_RESOURCES: Final = (names.NVIDIA_GPU, names.VCUDA_CORE, names.VCUDA_MEMORY, names.TUYA_SGPU)
NODE_FIELDS: Final = sorted(
    [
        *(f"metadata annotations {key}" for key in (names.INVENTORY, names.ANNOUNCED)),
        *(f"metadata labels {key}" for key in (names.AGENT_LABEL, names.MADE_UP_LABEL, *_LABELS)),
        *(f"status {field} {key}" for field in ("allocatable", "capacity") for key in _RESOURCES),
        f"status conditions {names.CARDS_CONDITION}",
    ]
)


def offered(found: Dump, node: str) -> set[str]:
    """How much of what the agent offered can still be had: kubelet keeps the names."""
    return {found[f"Node {node}"]["status"]["allocatable"][key] for key in _RESOURCES}


def unsaid() -> list[str]:
    """What stays on a node and is not on the page."""
    page = (ROOT / "docs" / "install.md").read_text()
    return [key for key in (*_SAID, *_LABELS) if f"`{key}`" not in page]


def of_tenants(found: Dump, *namespaces: str) -> Dump:
    """What people have there; the chart has rights in namespaces that are not its own."""
    return {title: item for title, item in found.items() if _namespace(item) in namespaces and not _by_helm(item)}


def _namespace(item: Object) -> str:
    return str(item["metadata"].get("namespace"))


def _by_helm(item: Object) -> bool:
    return "meta.helm.sh/release-name" in item["metadata"].get("annotations", {})


def native(cluster: Cluster, namespace: str) -> Mapping[str, str]:
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/{WRITTEN['metadata']['name']}"
    found: Mapping[str, str] = cluster.request("GET", path).must()["spec"]["hard"]
    return found


def reverted(cluster: Cluster, *more: str) -> tuple[int, str]:
    """By `halfcard quota revert`: its exit code, and what it says."""
    said = io.StringIO()
    with redirect_stdout(said):
        code = halfcard(["quota", "revert", *more, "--kubeconfig", str(cluster.admin.kubeconfig)])
    return code, " ".join(said.getvalue().split())


def folders(node: RealNode) -> set[str]:
    """Where our files are; kubelet has one of its own."""
    looked = ("/var/lib/halfcard", "/var/lib/kubelet/device-plugins", "/etc/cdi", "/run/cdi")
    done = node.run("find", *looked, "-type", "f", "-not", "-name", "kubelet_internal_checkpoint")
    return {folder for line in done.stdout.splitlines() for folder in looked if line.startswith(folder)}
