"""Halfcard's node agent on a real node, with the rights of its account."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from deploy.chart.made import CHART
from halfcard import names
from halfcard.quantity import Quantity

from .. import objects
from ..control_plane.users import User
from ..errors import CannotStartError
from ..nodes.namespaces import only_child
from ..nodes.node import RealNode
from ..processes import Component
from ..startable import Startable

_ROOT: Final = Path(__file__).parents[2]
_RBAC: Final = CHART / "rbac"
_ACCOUNT: Final = names.AGENT_SERVICE_ACCOUNT.rpartition(":")[2]
_READY_WITHIN_S: Final = 30.0
_GET: Final = """
import http.client, ssl, sys
address, port, path, token = sys.argv[1:]
if token:
    tls = ssl._create_unverified_context()  # each agent issues its certificate itself
    connection = http.client.HTTPSConnection(address, int(port), timeout=5, context=tls)
else:
    connection = http.client.HTTPConnection(address, int(port), timeout=5)
connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
answer = connection.getresponse()
print(answer.status, answer.read().decode(), sep="\\n", end="")
"""


class AgentProcess(Startable):
    """A running agent, ready on entering, with the machine's driver or what its arguments say."""

    account: User
    settings: Path
    program: Component

    def __init__(
        self, node: RealNode, *, settings: Mapping[str, Any] | None = None, arguments: Sequence[str] = ()
    ) -> None:
        self.node = node
        self.folder = node.folder / "agent"
        self._settings = settings or {}
        self._arguments = [*arguments]
        self._environment: Mapping[str, str] = {}
        super().__init__()

    def _start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.account = self._installed()
        self.settings = self.folder / "halfcard.yaml"
        self.configure(self._settings)
        self.program = self.node.program(
            "agent",
            *(sys.executable, "-m", "deviceplugin", "--kubeconfig", str(self.account.kubeconfig)),
            *("--node", self.node.name, "--settings", str(self.settings), "--log", "console", *self._arguments),
            environment={"PYTHONPATH": str(_ROOT), **self._environment},
        )
        self._stack.callback(self.program.kill)
        self.wait_ready()

    def _installed(self) -> User:
        cluster = self.node.cluster
        cluster.create_namespace(names.NAMESPACE)
        done = cluster.kubectl("apply", "-f", str(_RBAC))
        if done.code:
            raise CannotStartError(f"the RBAC was refused: {done.stderr}")
        return cluster.service_account(names.NAMESPACE, _ACCOUNT, node=self.node.name)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Sets the settings of the next start."""
        self.settings.write_text(json.dumps(settings))

    # --- the process --------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Returns the process id on the machine."""
        return only_child(self.program.pid)

    def kill(self) -> None:
        self.program.kill()

    def terminate(self) -> int:
        """Ends it as a DaemonSet ends a pod; returns the exit status."""
        return self.program.terminate()

    def start(self) -> None:
        self.program.start()
        self.wait_ready()

    def restart(self) -> None:
        self.terminate()
        self.start()

    def wait_ready(self) -> None:
        self.node.cluster.wait_until(self.ready, what=f"{self.program.name} to be ready", seconds=_READY_WITHIN_S)

    def ready(self) -> bool:
        if not self.program.running():
            raise CannotStartError(f"{self.program.name} ended by itself:\n{self.program.log_tail()}")
        return self.get(names.READY_PATH)[0] == 200

    def token(self) -> str:
        """Returns a token that may read usage."""
        return self.node.cluster.service_account(names.NAMESPACE, names.TOP).token

    # --- what it says -------------------------------------------------------------------------------------------------

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        """Requests a path from inside the node, at the node's address; the status is 0 without an answer.

        With a token it asks the port with TLS.
        """
        port = names.AGENT_TLS_PORT if token else names.AGENT_PORT
        done = self.node.run(sys.executable, "-I", "-S", "-c", _GET, self.node.network.address, str(port), path, token)
        status, _, body = done.stdout.partition("\n")
        return (int(status), body) if done.code == 0 else (0, "")

    def offered(self, resource: str) -> int:
        """Returns how much of a resource the API server offers on this node."""
        stored: objects.Object = self.node.cluster.request("GET", f"/api/v1/nodes/{self.node.name}").must()
        amount = Quantity.parse(stored["status"].get("allocatable", {}).get(resource, "0")).as_int()
        assert amount is not None, stored["status"]
        return amount

    def wait_offered(self, resource: str, amount: int) -> None:
        self.node.cluster.wait_until(
            lambda: self.offered(resource) == amount,
            what=f"{self.node.name} to offer {amount} {resource}",
            details=lambda: f"it has {self.offered(resource)}",
        )
