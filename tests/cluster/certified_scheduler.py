"""A stand-in for kube-scheduler that calls an extender over TLS; it reads its certificate only when it starts."""

from __future__ import annotations

import socket
import ssl
import sys
from pathlib import Path

from certs.objects import CA_CRT, TLS_CRT, TLS_KEY, entry
from devcluster.control_plane.client import ApiResponse
from devcluster.control_plane.network import free_port
from devcluster.services.installation import Replica
from halfcard import names

from .certified import Certified
from .certs_process import EXTENDER


class Scheduler:
    """Starts the extender with the certificate in `folder`."""

    def __init__(self, certified: Certified, folder: Path) -> None:
        self._certified = certified
        cluster, account = certified.cluster, certified.webhook.extender
        self._host = cluster.network.host_address
        self._port, status = free_port(self._host), free_port(self._host)
        program = cluster.program(
            "halfcard-extender",
            *(sys.executable, "-m", "extender", "--kubeconfig", str(account.kubeconfig), "--grace", "0"),
            *("--tls-dir", str(folder), "--client-ca", str(folder / CA_CRT)),
            *("--extender", f"{self._host}:{self._port}", "--status", f"{self._host}:{status}"),
            environment={"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        self._replica = Replica(program, self._host, self._port, status)
        cluster.wait_until(self._replica.ready, what="the extender to be ready")
        self.restart()

    def restart(self) -> None:
        secret = self._certified.secret(EXTENDER.leaves[1])
        trust = ssl.create_default_context(cadata=(entry(secret, CA_CRT) or b"").decode())
        pair = self._certified.cluster.folder / "scheduler.pem"
        pair.write_bytes((entry(secret, TLS_CRT) or b"") + (entry(secret, TLS_KEY) or b""))
        trust.load_cert_chain(pair)
        self._tls = trust

    def extender_metrics(self) -> str:
        return self._replica.status(names.METRICS_PATH)[1]

    def call(self) -> ApiResponse:
        try:
            with (
                socket.create_connection((self._host, self._port), timeout=5) as plain,
                self._tls.wrap_socket(plain, server_hostname=f"{names.EXTENDER_SERVICE}.{names.NAMESPACE}.svc") as link,
            ):
                link.sendall(f"GET {names.VERSION_PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                _, status, *_ = link.recv(1000).split() or (b"", b"0")
                return ApiResponse(int(status), "" if int(status) else "it closed the connection without an answer")
        except OSError as error:
            return ApiResponse(0, str(error))
