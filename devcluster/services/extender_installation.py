"""Halfcard's extender in a cluster as shipped: RBAC, certificates, replicas, and a scheduler that calls them."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from prometheus_client.parser import text_string_to_metric_families

from deploy.chart.made import CHART
from halfcard import names

from ..cluster import Cluster
from ..control_plane.network import free_port
from ..control_plane.users import User
from ..errors import CannotStartError
from ..objects import Object
from ..processes import Component
from .installation import Replica
from .relay import Place, Relay
from .scheduling import schedule_by, shipped

_ROOT: Final = Path(__file__).parents[2]
_RBAC: Final = CHART / "rbac"
_ANSWERS: Final = "halfcard_extender_answers_total"
_LEADING: Final = "halfcard_extender_leading 1.0"
_LEADS_WITHIN_S: Final = 40.0  # the Lease of one that was killed has to run out first
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class ExtenderReplica(Replica):
    """Attributes:
    tls: of a caller with a certificate; None where it speaks plain HTTP.
    """

    tls: ssl.SSLContext | None = None

    def leads(self) -> bool:
        return _LEADING in self.status(names.METRICS_PATH)[1]

    def answers(self, verb: str) -> int:
        """Returns how many calls it has answered."""
        families = text_string_to_metric_families(self.status(names.METRICS_PATH)[1])
        samples = (sample for family in families for sample in family.samples if sample.name == _ANSWERS)
        return int(sum(sample.value for sample in samples if sample.labels["verb"] == verb))

    def ask(self, path: str, question: Object | None = None, *, tls: ssl.SSLContext | None = None) -> Any:
        """Sends a GET, or a POST with a body; returns the answer as JSON. `tls` replaces the caller's certificate."""
        connection = self._connect(tls or self.tls)
        try:
            body = None if question is None else json.dumps(question)
            connection.request("GET" if body is None else "POST", path, body, {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def _connect(self, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
        if tls is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=_TIMEOUT_S)
        return http.client.HTTPSConnection(self.host, self.port, timeout=_TIMEOUT_S, context=tls)


class ExtenderInstallation:
    """Replicas listen on the host's end of the network, with TLS, and require client certificates.

    The scheduler reaches them at one address that leads to each of them in turn, like a Service.
    """

    def __init__(self, cluster: Cluster, *, settings: Mapping[str, Any] | None = None) -> None:
        self.cluster = cluster
        self.replicas: list[ExtenderReplica] = []
        self._settings = cluster.folder / "extender-settings.yaml"
        self._settings.write_text(json.dumps(settings or {}))
        self.service = Relay(cluster.network.host_address)
        cluster.create_namespace(names.NAMESPACE)
        done = cluster.kubectl("apply", "-f", str(_RBAC))
        if done.code:
            raise CannotStartError(f"the RBAC was refused: {done.stderr}")
        self.account: User = cluster.service_account(names.NAMESPACE, names.EXTENDER_SERVICE)
        host = cluster.network.host_address
        service = f"{names.EXTENDER_SERVICE}.{names.NAMESPACE}.svc"
        peer = cluster.authority.peer(names.EXTENDER_SERVICE, [host], [service])
        self.pair = cluster.folder / "extender-tls"
        self.pair.mkdir()
        shutil.copy(peer.certificate, self.pair / "tls.crt")
        shutil.copy(peer.key, self.pair / "tls.key")
        self.caller = cluster.authority.client("extender-caller", name="system:kube-scheduler", groups=[])
        self._started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.service.close()

    # --- replicas -------------------------------------------------------------------------------------------------

    def add_replica(self, *, access: Path | None = None, within_s: float = 30.0) -> ExtenderReplica:
        """Starts one more replica of the service; `access` is its own kubeconfig."""
        host = self.cluster.network.host_address
        port, status_port = free_port(host), free_port(host)
        authority = str(self.cluster.authority.certificate)
        arguments = ("--extender", f"{host}:{port}", "--status", f"{host}:{status_port}")
        mutual = ("--tls-dir", str(self.pair), "--client-ca", authority)
        program = self._start((*arguments, *mutual), access=access)
        replica = self._ready(ExtenderReplica(program, host, port, status_port, self._tls()), within_s)
        self.service.lead_to((host, port))
        return replica

    def add_local(self, port: int) -> ExtenderReplica:
        """Starts a replica beside the scheduler without TLS, as old configurations have it, outside the service."""
        inside, status_port = self.cluster.network.address, free_port()
        arguments = ("--extender", f":{port}", "--status", f"{inside}:{status_port}")
        program = self._start(arguments, enter=self.cluster.network.enter)
        return self._ready(ExtenderReplica(program, inside, port, status_port))

    def behind(self, relay: Relay) -> Path:
        """Returns a kubeconfig with which a replica reaches the API server through a relay."""
        network = self.cluster.network
        relay.lead_to((network.address, network.ports["apiserver"]))
        address, port = relay.address
        direct = self.account.kubeconfig
        through = direct.with_name(f"relayed-{port}.kubeconfig")
        through.write_text(direct.read_text().replace(self.cluster.url, f"https://{address}:{port}"))
        return through

    def _start(self, arguments: Sequence[str], *, access: Path | None = None, enter: Sequence[str] = ()) -> Component:
        self._started += 1
        name = f"{names.EXTENDER_SERVICE}-{self._started}"
        kubeconfig = access or self.account.kubeconfig
        return self.cluster.program(
            name,
            *(*enter, sys.executable, "-m", "extender", "--kubeconfig", str(kubeconfig)),
            *(*arguments, "--settings", str(self._settings), "--instance", name, "--grace", "0.2"),
            environment={"PYTHONPATH": str(_ROOT)},
        )

    def _ready(self, replica: ExtenderReplica, within_s: float = 30.0) -> ExtenderReplica:
        self.cluster.wait_until(replica.ready, what=f"{replica.program.name} to be ready", seconds=within_s)
        self.replicas.append(replica)
        return replica

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.cluster.authority.certificate))
        context.load_cert_chain(self.caller.certificate, self.caller.key)
        return context

    def kill(self, replica: ExtenderReplica) -> None:
        """Sends SIGKILL and takes the replica out of the service at once."""
        self.withdraw(replica)
        replica.program.kill()
        self.replicas.remove(replica)

    def end(self, replica: ExtenderReplica) -> int:
        """Ends a replica as a Deployment ends a pod; returns the exit status."""
        self.withdraw(replica)
        self.replicas.remove(replica)
        return replica.program.terminate()

    def withdraw(self, replica: ExtenderReplica) -> None:
        self.service.forget((replica.host, replica.port))

    def leader(self) -> ExtenderReplica:
        """Waits for a leader and returns it."""
        self.cluster.wait_until(
            lambda: any(replica.leads() for replica in self.replicas),
            what="a replica to lead",
            seconds=_LEADS_WITHIN_S,
        )
        return next(replica for replica in self.replicas if replica.leads())

    # --- questions ------------------------------------------------------------------------------------------------

    def filtered(self) -> int:
        """Returns how many filter calls all replicas have received."""
        return sum(replica.answers("filter") for replica in self.replicas)

    def inspect(self, node: str = "") -> Any:
        return self.leader().ask(f"{names.INSPECT_PATH}/{node}" if node else names.INSPECT_PATH)

    def filter(self, pod: Object, *nodes: str) -> Any:
        return self.leader().ask(names.FILTER_PATH, {"Pod": pod, "NodeNames": [*nodes]})

    def bind(self, pod: Object, node: str, *, by: ExtenderReplica | None = None) -> str:
        """Calls bind; returns the error, empty on success."""
        metadata = pod["metadata"]
        wanted = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        return str((by or self.leader()).ask(names.BIND_PATH, {**wanted, "Node": node})["Error"])

    # --- the scheduler --------------------------------------------------------------------------------------------

    def shipped(self, file: str, *, url: str | None = None) -> Object:
        """Returns a configuration of `deploy/scheduler` with the files and the address of this cluster."""
        files = {
            "caFile": str(self.cluster.authority.certificate),
            "certFile": str(self.caller.certificate),
            "keyFile": str(self.caller.key),
        }
        return shipped(file, url=url, tls=files)

    def recommended(self, server: Place | None = None) -> Object:
        """Returns the recommended configuration for the replicas, or for another server with the same API."""
        address, port = server or self.service.address
        return self.shipped("halfcard.yaml", url=f"https://{address}:{port}/scheduler")

    def schedule_by(self, configuration: Object) -> None:
        """Restarts the stock scheduler with a configuration."""
        schedule_by(self.cluster, configuration)
