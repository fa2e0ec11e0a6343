"""Makes kubelet's configuration and command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..control_plane.pki import KeyFiles
from ..objects import Object
from .containerd import SOCKET


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    name: str
    address: str
    kubeconfig: Path
    server: KeyFiles
    authority: Path


def configuration(identity: NodeIdentity, *, cgroup: str) -> Object:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": identity.address,
        "tlsCertFile": str(identity.server.certificate),
        "tlsPrivateKeyFile": str(identity.server.key),
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(identity.authority)}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "resolvConf": "",
        "clusterDNS": ["10.96.0.10"],  # `services.py` may answer there; without it every pod gets a warning event
        "clusterDomain": "cluster.local",
        "maxPods": 250,  # its pods' network has 253 addresses
        "nodeStatusUpdateFrequency": "2s",  # a device plugin's units soon appear on the Node
        **_on_a_shared_machine(cgroup),
    }


def _on_a_shared_machine(cgroup: str) -> Object:
    """Returns options with all pods in one cgroup of ours, and without limits or settings of the machine."""
    return {
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "evictionHard": dict.fromkeys(
            ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"),
            "0%",
        ),
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "protectKernelDefaults": True,  # fails instead of changing the machine; see node_init.sh
        "oomScoreAdj": 0,
    }


def arguments(identity: NodeIdentity, configuration_file: Path) -> list[str]:
    return [
        f"--config={configuration_file}",
        f"--kubeconfig={identity.kubeconfig}",
        f"--hostname-override={identity.name}",
        f"--node-ip={identity.address}",
    ]
