"""What is left after Halfcard was uninstalled, as docs/install.md documents it."""

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
"""A native quota as users write it: Kubernetes does not count this entry, so that Halfcard adds the twin."""

_OWN: Final = names.NAMESPACE


def expected_objects(pod_load: str) -> list[str]:
    """The titles of the objects that did not exist before Halfcard, outside of the tenants' namespace."""
    return [
        f"APIService v1alpha1.{names.OWN_DOMAIN}",
        f"ConfigMap {_OWN} gpuquota.{pod_load}.gpu",
        f"ConfigMap {_OWN} kube-root-ca.crt",
        f"CustomResourceDefinition clustergpuquotas.{names.OWN_DOMAIN}",
        f"CustomResourceDefinition gpuquotas.{names.OWN_DOMAIN}",
        f"CustomResourceDefinition gpuquotausages.{names.OWN_DOMAIN}",
        f"Namespace {_OWN}",
        f"ServiceAccount {_OWN} default",
    ]


_KEYS: Final = (names.INVENTORY, names.ANNOUNCED, names.AGENT_LABEL, names.MADE_UP_LABEL, names.CARDS_CONDITION)
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


def allocatable(found: Dump, node: str) -> set[str]:
    """The allocatable amounts of the agent's resources: kubelet keeps their names."""
    return {found[f"Node {node}"]["status"]["allocatable"][key] for key in _RESOURCES}


def undocumented_keys() -> list[str]:
    """The keys that stay on a node and that the page does not name."""
    page = (ROOT / "docs" / "install.md").read_text()
    return [key for key in (*_KEYS, *_LABELS) if f"`{key}`" not in page]


def objects_in(found: Dump, *namespaces: str) -> Dump:
    """The objects in some namespaces, without those of the chart, which creates roles there, too."""
    return {title: item for title, item in found.items() if _namespace(item) in namespaces and not _by_helm(item)}


def _namespace(item: Object) -> str:
    return str(item["metadata"].get("namespace"))


def _by_helm(item: Object) -> bool:
    return "meta.helm.sh/release-name" in item["metadata"].get("annotations", {})


def native_quota(cluster: Cluster, namespace: str) -> Mapping[str, str]:
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/{WRITTEN['metadata']['name']}"
    found: Mapping[str, str] = cluster.request("GET", path).must()["spec"]["hard"]
    return found


def revert_quotas(cluster: Cluster, *more: str) -> tuple[int, str]:
    """Runs `halfcard quota revert`; returns its exit code and output."""
    output = io.StringIO()
    with redirect_stdout(output):
        code = halfcard(["quota", "revert", *more, "--kubeconfig", str(cluster.admin.kubeconfig)])
    return code, " ".join(output.getvalue().split())


def folders_with_files(node: RealNode) -> set[str]:
    """The folders that still have files, except for kubelet's own file."""
    candidates = ("/var/lib/halfcard", "/var/lib/kubelet/device-plugins", "/etc/cdi", "/run/cdi")
    done = node.run("find", *candidates, "-type", "f", "-not", "-name", "kubelet_internal_checkpoint")
    return {folder for line in done.stdout.splitlines() for folder in candidates if line.startswith(folder)}
