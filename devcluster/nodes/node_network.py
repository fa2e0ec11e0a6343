"""The network of a node: a veth pair into its cluster's network namespace, and a network for its pods.

The cluster's namespace is the router: nodes reach the API server and each other's pods, and the API server reaches
kubelets. The machine's own network sees none of it. There is no kube-proxy: pods reach the Service `kubernetes`, whose
address the API server has itself, and others only where `services.py` runs.
"""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..control_plane.command_lines import FIRST_SERVICE_ADDRESS
from ..control_plane.network import Network, create_pair, ip, must_ip
from ..errors import CannotStartError
from .namespaces import NodeNamespaces

_LINKS = ipaddress.ip_network("198.19.0.0/24")
_PODS = ipaddress.ip_network("10.244.0.0/18")
_MOST_NODES = _LINKS.num_addresses // 4


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    address: str
    pods: str


@contextmanager
def node_network(cluster: Network, node: NodeNamespaces) -> Iterator[NodeNetwork]:
    if not cluster.enter:
        raise CannotStartError("a node cannot join a cluster on loopback: start it as Cluster(), without in_namespace.")
    number = create_pair("node", node.first_process, most=_MOST_NODES, within=cluster.enter)
    gateway, address = (str(_LINKS[4 * number + offset]) for offset in (1, 2))
    pods = f"{_PODS[256 * number]}/24"
    try:
        forward = "echo 1 >/proc/sys/net/ipv4/ip_forward"
        subprocess.run([*cluster.enter, "sh", "-c", forward], check=True)
        must_ip("address", "replace", f"{FIRST_SERVICE_ADDRESS}/32", "dev", "lo", within=cluster.enter)
        must_ip("address", "add", f"{gateway}/30", "dev", f"node{number}", within=cluster.enter)
        must_ip("link", "set", f"node{number}", "up", within=cluster.enter)
        must_ip("address", "add", f"{address}/30", "dev", "eth0", within=node.enter)
        must_ip("link", "set", "lo", "up", within=node.enter)
        must_ip("link", "set", "eth0", "up", within=node.enter)
        must_ip("route", "add", "default", "via", gateway, within=node.enter)
        must_ip("route", "add", pods, "via", address, within=cluster.enter)
        yield NodeNetwork(address, pods)
    finally:
        ip("link", "delete", f"node{number}", within=cluster.enter)
