"""A whole Kubernetes control plane as a context manager, with the users, nodes and Services that tests need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import objects
from .control_plane.control_plane import ControlPlane
from .control_plane.loader import LoadGenerator, Tally
from .control_plane.users import User
from .fake_nodes.gpu_nodes import GpuNodes
from .fake_nodes.kwok import Kwok

_TOKEN_LIFETIME_S = 365 * 24 * 3600  # no kubelet renews it here


class Cluster(ControlPlane):
    """A running etcd, API server, controller manager and scheduler; tests may use every public name."""

    kwok: Kwok | None = None

    def create_namespace(self, name: str) -> str:
        self.client.apply(self.admin, "/api/v1/namespaces", objects.namespace(name))
        self._wait_for_service_account(name)
        return name

    def tenant(self, namespace: str, name: str = "tenant") -> User:
        """Returns a user with the stock role `edit` in one namespace."""
        bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        self.client.apply(self.admin, bindings, objects.role_binding(user=name, cluster_role="edit"))
        return self.users.by_certificate(name)

    def node_user(self, name: str) -> User:
        return self.users.by_certificate(f"system:node:{name}", "system:nodes")

    def service_account(self, namespace: str, name: str, *, node: str = "") -> User:
        """Returns a user by token, bound to a node if one is named; creates the account if needed. Its rights come
        from RBAC alone.
        """
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        if not self.request("GET", f"{accounts}/{name}").ok:
            self.client.apply(self.admin, accounts, objects.service_account(name))
        asked = objects.token_request(seconds=_TOKEN_LIFETIME_S, node=node)
        token = self.request("POST", f"{accounts}/{name}/token", asked).must()["status"]["token"]
        return self.users.by_token(f"system:serviceaccount:{namespace}:{name}", token, node=node)

    def add_node(self, name: str, capacity: Mapping[str, str], labels: Mapping[str, str] | None = None) -> None:
        """Creates a Ready Node object for the scheduler; nothing runs there (delete its pods with --force)."""
        self.client.apply(self.admin, "/api/v1/nodes", objects.node(name, labels or {}))
        self.client.merge(self.admin, f"/api/v1/nodes/{name}/status", objects.node_status(capacity))
        self.wait_until(lambda: not self._taints(name), what=f"the taint not-ready to leave node {name}")

    def add_gpu_nodes(self, table: Sequence[GpuNodes], load: LoadGenerator | None = None) -> list[Tally]:
        """Creates fake nodes, Ready on return; kwok, which starts with the first call, runs their pods."""
        self.kwok = self.kwok or Kwok(self)
        return self.kwok.add_nodes(load or LoadGenerator(self), table)

    def _taints(self, node: str) -> object:
        return self.request("GET", f"/api/v1/nodes/{node}").must()["spec"].get("taints")

    def expose(self, namespace: str, service: str, port: int, target_port: int) -> None:
        """Routes the Service to a server at network.host_address:target_port; call it once for each replica.

        An existing Service, as shipped, is not changed: only the EndpointSlice is created.
        """
        services = f"/api/v1/namespaces/{namespace}/services"
        if not self.request("GET", f"{services}/{service}").ok:
            self.client.apply(self.admin, services, objects.service(service, port))
        ports = self.request("GET", f"{services}/{service}").must()["spec"]["ports"]
        port_name = next(each.get("name", "") for each in ports if each["port"] == port)
        address = self.network.host_address
        item = objects.endpoint_slice(
            service_name=service, port_name=port_name, address=address, target_port=target_port
        )
        self.client.apply(self.admin, self._slices(namespace), item)

    def withdraw(self, namespace: str, service: str, target_port: int) -> None:
        self.request("DELETE", f"{self._slices(namespace)}/{objects.slice_name(service, target_port)}").must()

    @staticmethod
    def _slices(namespace: str) -> str:
        return f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
