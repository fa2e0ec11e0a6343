"""The pods that Halfcard's chart created: their identities, images and certificates."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from devcluster.cluster import Cluster
from devcluster.nodes.node import RealNode
from devcluster.objects import Object
from devcluster.services.scheduling import schedule_by, shipped
from halfcard import names

_OWN_PODS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/pods"


def configure_scheduler(cluster: Cluster) -> None:
    """Configures kube-scheduler to call an extender pod: without kube-proxy the Service cannot be reached."""
    entries = certificate(cluster)
    folder = cluster.folder / "scheduler-tls"
    folder.mkdir(exist_ok=True)
    for name, content in entries.items():
        (folder / name).write_bytes(base64.b64decode(content))
    files = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    address = halfcard_pods(cluster, names.EXTENDER_SERVICE)[0]["status"]["podIP"]
    schedule_by(
        cluster,
        shipped(
            "halfcard.yaml",
            url=f"https://{address}:{names.EXTENDER_PORT}/scheduler",
            tls={key: str(folder / name) for key, name in files.items()},
        ),
    )


def certificate(cluster: Cluster, secret: str = names.SCHEDULER_TLS) -> Mapping[str, str]:
    """The data of a certificate's Secret; by default the scheduler's."""
    found: Mapping[str, str] = cluster.request("GET", f"/api/v1/namespaces/{names.NAMESPACE}/secrets/{secret}").must()[
        "data"
    ]
    return found


def halfcard_pods(cluster: Cluster, name: str = "") -> list[Object]:
    """The pods of one component, or of all; without those that are terminating."""
    selector = f"?labelSelector=app.kubernetes.io/name={name}" if name else ""
    items: list[Object] = cluster.request("GET", f"{_OWN_PODS}{selector}").must()["items"]
    return [each for each in items if "deletionTimestamp" not in each["metadata"]]


def image_names(cluster: Cluster) -> set[str]:
    found = halfcard_pods(cluster)
    return {container["image"] for each in found for container in each["spec"]["containers"]}


def replicas(cluster: Cluster) -> set[str]:
    return {each["metadata"]["uid"] for each in halfcard_pods(cluster, names.ADMISSION_SERVICE)}


def touch(cluster: Cluster, pods: Iterable[Object]) -> None:
    for each in pods:
        patch = {"metadata": {"annotations": {"example.com/touched": "yes"}}}
        cluster.client.merge(cluster.admin, f"{_OWN_PODS}/{each['metadata']['name']}", patch)


def served_certificate(node: RealNode, address: str) -> str:
    program = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], int(sys.argv[2]))))"
    done = node.run(sys.executable, "-c", program, address, str(names.ADMISSION_PORT))
    assert done.code == 0, done.stderr
    return done.stdout
