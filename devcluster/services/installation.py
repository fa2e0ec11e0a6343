"""Halfcard's webhook in a cluster as shipped: RBAC, certificate, replicas of a Service, registration."""

from __future__ import annotations

import http.client
import io
import json
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from cli.__main__ import main as halfcard
from deploy.chart.made import CHART
from halfcard import names
from halfcard.caller_tokens import written_tokens

from ..cluster import Cluster
from ..control_plane.client import ApiResponse, CommandResult
from ..control_plane.network import free_port
from ..control_plane.users import User
from ..errors import CannotStartError
from ..objects import Object, probe_pod
from ..processes import Component

TRUSTED_USER: Final = "peer-agent"
"""A trusted user of the installation's settings, like the node agent of another system."""

OFFERED: Final = names.VOLCANO_GPU_MEMORY
"""A resource that the nodes offer, counted in MiB, so that its containers get slots."""

_ROOT: Final = Path(__file__).parents[2]
_CRDS: Final = CHART / "kinds"
_RBAC: Final = CHART / "rbac"
_ACCOUNT: Final = "halfcard-admission"
_AGENT: Final = names.AGENT_SERVICE_ACCOUNT.rpartition(":")[2]
_COUNTED: Final = ("halfcard_admission_decisions_total", "halfcard_admission_http_errors_total")
_HTTPS: Final = 443


@dataclass(frozen=True, slots=True)
class Replica:
    program: Component
    host: str
    port: int
    status_port: int

    def status(self, path: str) -> tuple[int, str]:
        """Returns what the status listener answers; status 0 without an answer."""
        connection = http.client.HTTPConnection(self.host, self.status_port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def ready(self) -> bool:
        if not self.program.running():
            raise CannotStartError(f"{self.program.name} ended by itself:\n{self.program.log_tail()}")
        return self.status(names.READY_PATH)[0] == 200

    def calls(self, webhook: str) -> int:
        """Returns how often a webhook was called; all of them together if none is named."""
        families = text_string_to_metric_families(self.status(names.METRICS_PATH)[1])
        samples = (sample for family in families for sample in family.samples if sample.name in _COUNTED)
        return int(sum(sample.value for sample in samples if not webhook or sample.labels.get("webhook") == webhook))


class Installation:
    def __init__(
        self, cluster: Cluster, *, exempt: Sequence[str] = (), settings: Mapping[str, Any] | None = None
    ) -> None:
        """Uses the default settings plus a trusted user, nodes that offer MiB, and what `settings` contains."""
        self.cluster = cluster
        self.replicas: list[Replica] = []
        cluster.create_namespace(names.NAMESPACE)
        self._must("apply", "-f", str(_CRDS))
        self._must("wait", "--for=condition=Established", "--timeout=30s", "-f", str(_CRDS))
        self._must("apply", "-f", str(_RBAC))
        self.account: User = cluster.service_account(names.NAMESPACE, _ACCOUNT)
        self.extender: User = cluster.service_account(names.NAMESPACE, names.EXTENDER_SERVICE)
        self.agent: User = cluster.service_account(names.NAMESPACE, _AGENT)
        self._tls = self._certificate()
        self.caller_tokens = self._caller_tokens()
        self.settings = cluster.folder / "halfcard.yaml"
        own = {"trusted_users": [TRUSTED_USER], "exempt_namespaces": [*exempt], "node_resources": [OFFERED]}
        self.settings.write_text(json.dumps({**own, **(settings or {})}))
        self._started = 0

    def _certificate(self) -> Path:
        service = f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}.svc"
        address = self.cluster.network.host_address
        pair = self.cluster.authority.server("halfcard-admission", [address], names=[service])
        folder = self.cluster.folder / "halfcard-tls"
        folder.mkdir()
        shutil.copy(pair.certificate, folder / "tls.crt")
        shutil.copy(pair.key, folder / "tls.key")
        return folder

    def _caller_tokens(self) -> Path:
        file = self.cluster.folder / "halfcard-caller-tokens"
        file.write_bytes(written_tokens([secrets.token_hex(32)]))
        return file

    def _must(self, *arguments: str, stdin: str = "") -> None:
        done = self.cluster.kubectl(*arguments, stdin=stdin)
        if done.code:
            raise CannotStartError(f"kubectl {' '.join(arguments)} failed: {done.stderr}")

    def start_replica(self) -> Replica:
        """Starts one more process; it is ready on return, and not yet part of the Service."""
        host = self.cluster.network.host_address
        port, status_port = free_port(host), free_port(host)
        self._started += 1
        program = self.cluster.program(
            f"halfcard-admission-{self._started}",
            *(sys.executable, "-m", "admission", "--kubeconfig", str(self.account.kubeconfig)),
            *("--tls-dir", str(self._tls), "--caller-tokens", str(self.caller_tokens)),
            *("--settings", str(self.settings), "--grace", "1"),
            *("--admission", f"{host}:{port}", "--status", f"{host}:{status_port}"),
            environment={"PYTHONPATH": str(_ROOT)},
        )
        replica = Replica(program, host, port, status_port)
        self.cluster.wait_until(replica.ready, what=f"{program.name} to be ready")
        return replica

    def add_replica(self) -> Replica:
        replica = self.start_replica()
        self.cluster.expose(names.NAMESPACE, names.ADMISSION_SERVICE, _HTTPS, replica.port)
        self.replicas.append(replica)
        return replica

    def end(self, replica: Replica) -> int:
        """Ends a replica as a Deployment ends a pod: it leaves the Service at once; returns the exit status."""
        self.cluster.withdraw(names.NAMESPACE, names.ADMISSION_SERVICE, replica.port)
        self.replicas.remove(replica)
        return replica.program.terminate()

    def registration(self) -> str:
        """Returns what `halfcard webhooks` prints for this cluster."""
        printed = io.StringIO()
        authority = str(self.cluster.authority.certificate)
        with redirect_stdout(printed):
            tokens = ["--caller-tokens", str(self.caller_tokens)]
            assert halfcard(["webhooks", "--ca", authority, *tokens, "--settings", str(self.settings)]) == 0
        return printed.getvalue()

    def register(self) -> None:
        """Registers the webhooks and returns when the API server calls both for pods."""
        self._must("apply", "-f-", stdin=self.registration())

        def asked() -> bool:
            before = self._pod_calls()
            self.create("default", probe_pod("probe"), dry_run=True)
            return all(now > then for now, then in zip(self._pod_calls(), before, strict=True))

        self.cluster.wait_until(asked, what="the API server to ask the webhooks")

    @contextmanager
    def unregistered(self) -> Iterator[None]:
        """Removes the registration for a while, as before Halfcard was installed."""
        self._must("delete", "-f-", stdin=self.registration())

        def silent() -> bool:
            before = self.calls()
            self.create("default", probe_pod("probe"), dry_run=True)
            return self.calls() == before

        self.cluster.wait_until(silent, what="the API server to ask no longer")
        yield
        self.register()

    @contextmanager
    def without(self, sort: str) -> Iterator[None]:
        """Removes the `mutating` or the `validating` registration for a while, as if those calls failed open."""
        path = {"mutating": names.MUTATE_PODS_PATH, "validating": names.VALIDATE_PODS_PATH}[sort]
        self._must("delete", f"{sort}webhookconfiguration", "halfcard")

        def silent() -> bool:
            before = self.calls(path)
            self.create("default", probe_pod("probe"), dry_run=True)
            return self.calls(path) == before

        self.cluster.wait_until(silent, what=f"the API server to stop {sort}")
        try:
            yield
        finally:
            self.register()

    def _pod_calls(self) -> tuple[int, int]:
        return self.calls(names.MUTATE_PODS_PATH), self.calls(names.VALIDATE_PODS_PATH)

    def calls(self, webhook: str = "") -> int:
        return sum(replica.calls(webhook) for replica in self.replicas)

    def kubectl(self, namespace: str, *arguments: str, item: Object | None = None) -> CommandResult:
        """Runs kubectl in a namespace, with the object on standard input if there is one."""
        stdin = "" if item is None else json.dumps(item)
        return self.cluster.kubectl("-n", namespace, *arguments, stdin=stdin)

    def create(self, namespace: str, item: Object, *, dry_run: bool = False, user: User | None = None) -> ApiResponse:
        """Creates an object as `kubectl create` does, without its 100 ms."""
        query = "?dryRun=All" if dry_run else ""
        return self.cluster.request("POST", f"{collection(namespace, item)}{query}", item, user=user)

    def get(self, namespace: str, kind: str, name: str) -> Object:
        """Returns the object as it is stored."""
        done = self.kubectl(namespace, "get", kind, name, "-o=json")
        assert done.code == 0, done.stderr
        stored: Object = json.loads(done.stdout)
        return stored


def collection(namespace: str, item: Object) -> str:
    """Returns the path of the collection of such objects; regular English plurals are enough here."""
    version = item["apiVersion"]
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    return f"{root}/namespaces/{namespace}/{item['kind'].lower()}s"
