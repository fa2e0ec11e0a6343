"""The few Kubernetes objects that this package itself makes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halfcard import names

Object = dict[str, Any]

_NODE_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def node(name: str, labels: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
    }


def node_status(capacity: Mapping[str, str]) -> Object:
    total = {**_NODE_CAPACITY, **capacity}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "a Node object without a kubelet",
    }
    return {"status": {"capacity": total, "allocatable": total, "conditions": [ready]}}


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def service_account(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def token_request(*, seconds: int, node: str = "") -> Object:
    """Requests a token; one with a node names it and ends with it."""
    bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": node}} if node else {}
    return {"spec": {"expirationSeconds": seconds, **bound}}


def role_binding(*, user: str, cluster_role: str) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{user}-{cluster_role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


def service(name: str, port: int) -> Object:
    """Returns a Service without a selector, whose endpoints are only ours."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": port}]},
    }


def slice_name(service_name: str, target_port: int) -> str:
    return f"{service_name}-host-{target_port}"


def endpoint_slice(*, service_name: str, port_name: str, address: str, target_port: int) -> Object:
    """Returns an EndpointSlice; its label managed-by keeps Kubernetes' own controller from removing it."""
    labels = {
        "kubernetes.io/service-name": service_name,
        "endpointslice.kubernetes.io/managed-by": "halfcard-tests",
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": slice_name(service_name, target_port), "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": port_name, "port": target_port, "protocol": "TCP"}],
    }


def probe_pod(name: str) -> Object:
    """Returns a pod that requests 0.3 of a card; if the webhook is called, it is stored with 30 per cent."""
    limits = {names.VCUDA_CORE: "0.3", names.VCUDA_MEMORY: "5Gi"}
    container = {"name": "probe", "image": "example.invalid/image:1", "resources": {"limits": limits}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def is_ready(item: Object) -> bool:
    """Returns whether the condition Ready of a Node or a Pod is True."""
    conditions = item.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
