"""Halfcard's quota service beside an installation: its account, its replicas, quotas and ledgers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.quota.ledger import Ledger
from kube.ledger.ledger_store import ConfigMap, WatchedLedger

from ..cluster import Cluster
from ..control_plane.client import ApiResponse
from ..control_plane.network import free_port
from ..control_plane.users import User
from ..objects import Object
from .installation import Installation, Replica

_ROOT: Final = Path(__file__).parents[2]
_LEADING: Final = "halfcard_quota_leading 1.0"
_LEADS_WITHIN_S: Final = 40.0  # the Lease of one that was killed has to run out first


class QuotaInstallation:
    def __init__(self, webhook: Installation) -> None:
        self.webhook = webhook
        self.cluster = webhook.cluster
        self.replicas: list[Replica] = []
        self.account: User = self.cluster.service_account(names.NAMESPACE, names.QUOTA_SERVICE)
        self._started = 0

    def add_replica(self) -> Replica:
        host = self.cluster.network.host_address
        port = free_port(host)
        self._started += 1
        program = self.cluster.program(
            f"halfcard-quota-{self._started}",
            *(sys.executable, "-m", "quota", "--kubeconfig", str(self.account.kubeconfig)),
            *("--settings", str(self.webhook.settings), "--status", f"{host}:{port}", "--log", "console"),
            environment={"PYTHONPATH": str(_ROOT)},
        )
        replica = Replica(program, host, port, port)
        self.cluster.wait_until(replica.ready, what=f"{program.name} to be ready")
        self.replicas.append(replica)
        return replica

    def leader(self) -> Replica | None:
        return next((each for each in self.replicas if _LEADING in each.status(names.METRICS_PATH)[1]), None)

    def wait_led(self) -> Replica:
        self.cluster.wait_until(lambda: self.leader() is not None, what="a leader", seconds=_LEADS_WITHIN_S)
        found = self.leader()
        assert found is not None
        return found

    # --- quotas -------------------------------------------------------------------------------------------------------

    def allow(self, namespace: str, name: str = "gpu", **spec: Any) -> str:
        """Creates or changes a GpuQuota and returns once it is counted; returns the name of its ledger."""
        return self._allow(quota(name, spec, namespace))

    def allow_together(self, name: str, **spec: Any) -> str:
        return self._allow(quota(name, spec))

    def _allow(self, item: Object) -> str:
        done = self.cluster.kubectl("apply", "--server-side", "-f-", stdin=json.dumps(item))
        assert done.code == 0, done.stderr
        self.cluster.wait_until(lambda: self._is_counted(item), what=f"{item['metadata']['name']} to be counted")
        return ledger_of(item)

    def _is_counted(self, item: Object) -> bool:
        found = self.cluster.request("GET", path_of(item)).must()
        conditions = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions", [])}
        return conditions.get("Ready") == "True" and self.ledger(ledger_of(item)).quota_uid == found["metadata"]["uid"]

    def ledger(self, name: str) -> Ledger:
        answer = self.cluster.request("GET", f"/api/v1/namespaces/{names.NAMESPACE}/configmaps/{name}")
        if answer.status == 404:
            return Ledger({})
        found = WatchedLedger(name, msgspec.convert(answer.must(), ConfigMap)).read()
        assert found is not None, answer.body
        return found.ledger

    def status(self, namespace: str, name: str = "gpu") -> Mapping[str, Any]:
        found: Object = self.cluster.request("GET", path_of(quota(name, {}, namespace))).must()
        status: Mapping[str, Any] = found.get("status", {})
        return status


@contextmanager
def cluster_with_quotas(*, webhooks: int = 1, services: int = 1) -> Iterator[QuotaInstallation]:
    """Yields a cluster with that many replicas of the webhook and of the quota service."""
    with Cluster() as cluster:
        webhook = Installation(cluster)
        for _ in range(webhooks):
            webhook.add_replica()
        webhook.register()
        service = QuotaInstallation(webhook)
        for _ in range(services):
            service.add_replica()
        service.wait_led()
        yield service


def quota(name: str, spec: Mapping[str, Any], namespace: str = "") -> Object:
    kind = names.GPU_QUOTA if namespace else names.CLUSTER_GPU_QUOTA
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "halfcard.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": dict(spec)}


def path_of(item: Object) -> str:
    namespace, name = item["metadata"].get("namespace"), item["metadata"]["name"]
    if namespace:
        return f"{names.QUOTA_API}/namespaces/{namespace}/{names.GPU_QUOTAS}/{name}"
    return f"{names.QUOTA_API}/{names.CLUSTER_GPU_QUOTAS}/{name}"


def ledger_of(item: Object) -> str:
    namespace, name = item["metadata"].get("namespace"), item["metadata"]["name"]
    return f"gpuquota.{namespace}.{name}" if namespace else f"clustergpuquota.{name}"


def refusal(answer: ApiResponse) -> str:
    assert answer.status == 403, answer.body
    return str(answer.body["message"])
