"""Starts and ends a control plane: ready in seconds, also runs a test's own programs, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..objects import Object
from ..processes import Component, Launcher
from ..scratch import scratch_folder
from ..startable import Startable
from ..waiting import wait_until
from .client import ApiResponse, Client, CommandResult
from .command_lines import FIRST_SERVICE_ADDRESS, ControlPlaneFiles
from .network import Network, loopback_network, private_network
from .pki import ClusterAuthority
from .supervisor import Supervisor
from .users import User, Users


class ControlPlane(Startable):
    """A running etcd, API server, controller manager and scheduler, without the helpers of `Cluster`."""

    launcher: Launcher
    network: Network
    folder: Path
    authority: ClusterAuthority
    client: Client
    users: Users
    admin: User
    components: Supervisor

    def __init__(self, *, in_namespace: bool = True, flags: Mapping[str, Sequence[str]] | None = None) -> None:
        """The parameter flags adds to the command lines of components, by their names."""
        self._in_namespace = in_namespace
        self._flags = flags or {}
        super().__init__()

    def _start(self) -> None:
        self.launcher = Launcher()
        self._stack.callback(self.launcher.close)
        self.folder = self._stack.enter_context(scratch_folder())
        network = private_network(self.launcher, self.folder) if self._in_namespace else loopback_network()
        self.network = self._stack.enter_context(network)
        self.authority = ClusterAuthority(self.folder / "pki")
        self.users = Users(folder=self.folder / "users", server=self.url, authority=self.authority)
        self.admin = self.users.by_certificate("admin", "system:masters")
        port = self.network.ports["apiserver"]
        self.client = Client(self.network.address, port, self.authority.certificate, home=self.folder)
        self.components = Supervisor(
            network=self.network,
            files=self._files(),
            launcher=self.launcher,
            logs=self.folder / "logs",
            flags=self._flags,
        )
        self._stack.callback(self.components.stop)
        self.components.start()
        self._wait_for_service_account("default")

    def _files(self) -> ControlPlaneFiles:
        addresses = sorted({self.network.address, "127.0.0.1", FIRST_SERVICE_ADDRESS})
        return ControlPlaneFiles(
            data=self.folder / "etcd",
            authority=self.authority.certificate,
            server=self.authority.server("server", addresses),
            kubelet_client=self.authority.client("kubelet-client", name="kube-apiserver", groups=["system:masters"]),
            token_key=self.authority.signing_key("tokens"),
            controller_manager=self.users.by_certificate("system:kube-controller-manager").kubeconfig,
            scheduler=self.users.by_certificate("system:kube-scheduler").kubeconfig,
        )

    @property
    def url(self) -> str:
        return f"https://{self.network.address}:{self.network.ports['apiserver']}"

    def kubectl(self, *arguments: str, user: User | None = None, stdin: str = "") -> CommandResult:
        return self.client.kubectl(user or self.admin, *arguments, stdin=stdin)

    def request(self, method: str, path: str, body: Object | None = None, *, user: User | None = None) -> ApiResponse:
        return self.client.request(user or self.admin, method, path, body)

    def _wait_for_service_account(self, namespace: str) -> None:
        """Waits for the account `default`: before the controller manager has created it, pods are refused."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        self.wait_until(lambda: self.request("GET", path).ok, what=f"the default service account of {namespace}")

    def wait_until(
        self,
        condition: Callable[[], bool],
        *,
        what: str,
        seconds: float = 30.0,
        details: Callable[[], str] = lambda: "",
    ) -> None:
        """Waits for a condition; at the deadline the error shows the logs of the components."""
        wait_until(
            condition,
            what=what,
            seconds=seconds,
            details=lambda: f"{details()}\n{self.components.log_tails()}",
        )

    def program(self, name: str, *command: str, environment: Mapping[str, str] | None = None) -> Component:
        """Starts a program of the test, such as a webhook; it ends with the cluster."""
        log = self.folder / "logs" / f"{name}.log"
        component = Component(name, command, log, self.launcher, environment or {})
        self._stack.callback(component.kill)
        component.start()
        return component
