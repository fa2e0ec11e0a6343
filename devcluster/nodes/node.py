"""A real node: kubelet on containerd and runc in their own namespaces, which leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from .. import objects
from ..build.binaries import program_path
from ..cluster import Cluster
from ..control_plane.client import CommandResult, run
from ..control_plane.network import check_machine as check_programs
from ..errors import CannotStartError
from ..processes import Component
from ..startable import Startable
from . import containerd, kubelet
from .cgroups import node_cgroup
from .images import write_images
from .kubelet import NodeIdentity
from .namespaces import InsideComponent, node_namespaces
from .node_network import NodeNetwork, node_network

_READY_WITHIN_S = 90.0
_NEEDED = {
    "runc": "runc",
    "busybox": "busybox-static",
    "ip": "iproute2",
    **dict.fromkeys(("nsenter", "setpriv", "setsid", "unshare"), "util-linux"),
}


def check_machine() -> None:
    """Checks for the programs that are not built."""
    if os.geteuid() != 0:
        raise CannotStartError("a node runs containers, which needs root: run this as root.")
    check_programs(_NEEDED)
    containerd.network_plugins()


class RealNode(Startable):
    """A node that runs pods; tests may kill, pause, resume and start its components containerd and kubelet."""

    folder: Path
    network: NodeNetwork
    containerd: Component
    kubelet: Component

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        super().__init__()

    def _start(self) -> None:
        check_machine()
        program_path("kubelet")
        program_path("containerd")
        self.folder = self.cluster.folder / "nodes" / self.name
        self.folder.mkdir(parents=True)
        self._stack.callback(shutil.rmtree, self.folder)
        cgroup = self._stack.enter_context(node_cgroup(self.cluster.folder, self.name))
        namespaces = node_namespaces(self.cluster.launcher, self.folder, name=self.name, log=self._log("namespaces"))
        self._namespaces = self._stack.enter_context(namespaces)
        self.network = self._stack.enter_context(node_network(self.cluster.network, self._namespaces))
        self._start_containerd()
        self._start_kubelet(cgroup)

    def _log(self, program: str) -> Path:
        return self.cluster.folder / "logs" / f"{self.name}-{program}.log"

    def _start_containerd(self) -> None:
        networks = self.folder / "networks"
        networks.mkdir()
        bridge = containerd.bridge(pods=self.network.pods, leases=self.folder / "leases")
        (networks / "pods.conflist").write_text(bridge)
        configuration = self.folder / "containerd.toml"
        configuration.write_text(containerd.configuration(root=self.folder / "containerd", networks=networks))
        program = program_path("containerd")
        beside_it = {"PATH": f"{program.parent}:{os.environ.get('PATH', os.defpath)}"}  # its shim, not a machine's
        self.containerd = self.program("containerd", str(program), f"--config={configuration}", environment=beside_it)
        socket = self.path(containerd.SOCKET)
        self._wait_for(self.containerd, "to listen", socket.is_socket)
        self._import_images()

    def _import_images(self) -> None:
        archive = self.folder / "images.tar"
        write_images(archive)
        client = (str(program_path("ctr")), f"--address={containerd.SOCKET}", "--namespace=k8s.io")
        done = self.run(*client, "images", "import", "--local", f"--snapshotter={containerd.SNAPSHOTTER}", str(archive))
        if done.code != 0:
            raise CannotStartError(
                f"containerd on {self.name} takes no images: {done.stderr}\n{self.containerd.log_tail()}"
            )

    def _start_kubelet(self, cgroup: str) -> None:
        identity = NodeIdentity(
            name=self.name,
            address=self.network.address,
            kubeconfig=self.cluster.node_user(self.name).kubeconfig,
            server=self.cluster.authority.server(f"kubelet-{self.name}", [self.network.address], [self.name]),
            authority=self.cluster.authority.certificate,
        )
        configuration = self.folder / "kubelet.json"
        configuration.write_text(json.dumps(kubelet.configuration(identity, cgroup=cgroup)))
        self._stack.callback(self._forget)
        self.kubelet = self.program(
            "kubelet", str(program_path("kubelet")), *kubelet.arguments(identity, configuration)
        )
        self._wait_for(self.kubelet, "to make its node ready", self._ready)

    def _wait_for(self, component: Component, what: str, condition: Callable[[], bool]) -> None:
        def met_or_dead() -> bool:
            if not component.running():
                raise CannotStartError(f"{component.name} ended by itself:\n{component.log_tail()}")
            return condition()

        self.cluster.wait_until(met_or_dead, what=f"{component.name} {what}", seconds=_READY_WITHIN_S)

    def _ready(self) -> bool:
        node = self.cluster.request("GET", f"/api/v1/nodes/{self.name}")
        return node.ok and objects.is_ready(node.body) and not node.body["spec"].get("taints")

    def _healthy(self) -> bool:
        return self.cluster.request("GET", f"/api/v1/nodes/{self.name}/proxy/healthz").ok

    def _forget(self) -> None:
        """Deletes the Node, so that no pod is scheduled there any more. A test may have ended the API server."""
        with suppress(OSError):
            self.cluster.request("DELETE", f"/api/v1/nodes/{self.name}")

    def wait_healthy(self) -> None:
        """Waits until a restarted kubelet is Ready and answers the API server."""
        self._wait_for(self.kubelet, "to be healthy", self._healthy)

    @property
    def device_plugins(self) -> Path:
        """Returns the folder with the sockets of device plugins and kubelet.sock."""
        return self.path("/var/lib/kubelet/device-plugins")

    @property
    def pod_resources(self) -> Path:
        return self.path("/var/lib/kubelet/pod-resources/kubelet.sock")

    def path(self, inside: str) -> Path:
        """Returns the path of a file of the node as the test reaches it; short enough for a socket."""
        return Path(f"/proc/{self._namespaces.first_process}/root{inside}")

    def run(self, *command: str, stdin: str = "") -> CommandResult:
        """Runs a short command inside the node, which has the machine's files except the folders in node_init.sh."""
        return run(*self.command(*command), home=self.folder, stdin=stdin)

    def command(self, *command: str) -> list[str]:
        """Returns the command that runs another one inside the node."""
        return [*self._namespaces.enter, *command]

    def program(self, name: str, *command: str, environment: Mapping[str, str] | None = None) -> Component:
        """Starts a program inside the node, such as a device plugin; it ends with the node."""
        component = InsideComponent(
            f"{name} of {self.name}",
            self.command(*command),
            self._log(name),
            self.cluster.launcher,
            environment or {},
        )
        self._stack.callback(component.kill)
        component.start()
        return component
