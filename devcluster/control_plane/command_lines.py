"""Makes the command lines of the control plane."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .network import Network
from .pki import KeyFiles

SERVICE_NETWORK = "10.96.0.0/16"
FIRST_SERVICE_ADDRESS = "10.96.0.1"


@dataclass(frozen=True, slots=True)
class ControlPlaneFiles:
    data: Path
    authority: Path
    server: KeyFiles
    kubelet_client: KeyFiles
    token_key: Path
    controller_manager: Path
    scheduler: Path


def etcd(network: Network, files: ControlPlaneFiles) -> list[str]:
    client, peer = (f"http://{network.address}:{network.ports[name]}" for name in ("etcd", "etcd-peer"))
    return [
        "--name=etcd",
        f"--data-dir={files.data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=etcd={peer}",
        "--unsafe-no-fsync",  # a kill -9 loses nothing that the kernel has; no power cut is tested
        "--log-level=warn",
    ]


def apiserver(network: Network, files: ControlPlaneFiles) -> list[str]:
    return [
        f"--etcd-servers=http://{network.address}:{network.ports['etcd']}",
        f"--bind-address={'0.0.0.0' if network.enter else network.address}",  # see node_network.py
        f"--advertise-address={network.address}",
        f"--secure-port={network.ports['apiserver']}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        f"--client-ca-file={files.authority}",
        # Without these the other components complain every few seconds that this CA is missing.
        f"--requestheader-client-ca-file={files.authority}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.token_key}",
        f"--service-account-signing-key-file={files.token_key}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--enable-aggregator-routing=true",  # webhooks by Service reference go straight to the EndpointSlice
        "--allow-privileged=true",
        f"--kubelet-client-certificate={files.kubelet_client.certificate}",
        f"--kubelet-client-key={files.kubelet_client.key}",
        f"--kubelet-certificate-authority={files.authority}",
        "--kubelet-preferred-address-types=InternalIP",  # no name of a node is known to any DNS
    ]


def _client(kubeconfig: Path, *, port: int, network: Network, files: ControlPlaneFiles) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={network.address}",
        f"--secure-port={port}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        "--leader-elect=false",
    ]


def controller_manager(network: Network, files: ControlPlaneFiles) -> list[str]:
    return [
        *_client(files.controller_manager, port=network.ports["controller-manager"], network=network, files=files),
        f"--service-account-private-key-file={files.token_key}",
        f"--root-ca-file={files.authority}",
        "--use-service-account-credentials=true",
        "--node-monitor-grace-period=24h",  # a Node object without a kubelet stays Ready
    ]


def scheduler(network: Network, files: ControlPlaneFiles) -> list[str]:
    return _client(files.scheduler, port=network.ports["scheduler"], network=network, files=files)
