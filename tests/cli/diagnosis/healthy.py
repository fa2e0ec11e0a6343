"""A snapshot in which nothing is wrong, and ways to spoil one thing of it."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from admission.policy_settings import policy_of
from cli.diagnosis.observations import settings_hash
from cli.diagnosis.own_objects import OwnPod, WorkloadSnapshot
from cli.diagnosis.quotas.gpu_quota_checks import CRDS, SPEC, VERSION
from cli.diagnosis.snapshot import NodeSnapshot, NodeSystem, PodSnapshot, Probe, Scheduler, Snapshot
from extender.scheduler_api.scheduler_contact import (
    CallerCertificate,
    FailedHandshake,
    HandshakeFailure,
    SchedulerContact,
    write_contact,
)
from halfcard import names
from halfcard.webhook_configurations import configurations
from settings.installation import Settings

from .papers import Paper, authority, leaf

NOW: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY: Final = timedelta(days=1)
CA: Final = authority(NOW - DAY)
LEAF: Final = leaf(CA, f"{names.ADMISSION_SERVICE}.{names.NAMESPACE}.svc", NOW - DAY)
TOKEN: Final = "7" * 64
SECRET: Final = {"tls.crt": LEAF.pem, "ca.crt": CA.pem}
COPY: Final = leaf(CA, "kube-scheduler", NOW - DAY, 3650 * DAY)
CREATED: Final = "2026-11-20T12:00:00Z"

Item = dict[str, Any]


def bundle(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def registration(change: Callable[[Item], object] = len, *, of: str = "") -> tuple[Item, ...]:
    """As the API server keeps it; `change` is made to every webhook, or to those whose names begin so."""
    policy = policy_of(Settings())
    objects = copy.deepcopy(
        configurations(policy.dialects, exempt=policy.exempt_namespaces, ca_bundle=bundle(CA.pem), token=TOKEN)
    )
    for webhook in (each for item in objects for each in item["webhooks"]):
        webhook |= {"objectSelector": {}}
        for rule in webhook["rules"]:
            rule["scope"] = "*"
        if webhook["name"].startswith(of):
            change(webhook)
    return tuple(objects)


def lease(holder: str = "one", age_s: float = 2) -> Item:
    renewed = NOW - timedelta(seconds=age_s)
    spec = {"holderIdentity": holder, "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"}
    return {"metadata": {"creationTimestamp": CREATED}, "spec": spec}


def contact(
    caller: Paper = COPY, *, asked: datetime | None = NOW - DAY, failed: Mapping[HandshakeFailure, datetime] = {}
) -> Item:
    """The Lease on which the extender shows that a scheduler called with this certificate."""
    shown = caller.certificate
    subject, serial = shown.subject.rfc4514_string(), f"{shown.serial_number:x}"
    seen = SchedulerContact(
        asked,
        asked,
        {"10.0.0.1": CallerCertificate(NOW - DAY, shown.not_valid_after_utc, subject, serial)},
        {str(why): FailedHandshake(last, "10.0.0.1") for why, last in failed.items()},
    )
    return {"metadata": {"annotations": {names.CONTACT: write_contact(seen)}}, "spec": {}}


def node(name: str = "gpu-1", **changes: Any) -> NodeSnapshot:
    seen = NodeSnapshot(
        name,
        {names.AGENT_LABEL: "true"},
        2,
        {"status": "True", "reason": "CardsInOrder"},
        {names.VCUDA_CORE: 200, names.VCUDA_MEMORY: 120},
        NodeSystem("v1.36.1", "containerd://2.4.0", "amd64"),
        clock=-3.0,
    )
    return seen._replace(**changes)


def pod(name: str = "work", **changes: Any) -> PodSnapshot:
    seen = PodSnapshot(
        f"team/{name}",
        "gpu-1",
        "2026-11-21T10:00:00Z",
        names.DEFAULT_SCHEDULER,
        is_static=False,
        is_recorded=True,
        asks=True,
    )
    return seen._replace(**changes)


def own_pod(account: str, **changes: Any) -> OwnPod:
    started = NOW - DAY
    seen = OwnPod(f"{account}-x", account, "gpu-1", is_ready=True, since=started, started=started)
    return seen._replace(settings=settings_hash({}))._replace(**changes)


def workload(kind: str, name: str, **changes: Any) -> WorkloadSnapshot:
    seen = WorkloadSnapshot(kind, names.NAMESPACE, name, name, ("halfcard.dev/halfcard:1",), (names.SETTINGS_MAP,))
    return seen._replace(**changes)


def scheduler(**changes: Any) -> Item:
    managed = [{"name": name} for name in sorted(Settings().enabled_dialects().resources)]
    extender = {"filterVerb": "filter", "bindVerb": "bind", "ignorable": False, "managedResources": managed}
    tls = {"enableHTTPS": True, "tlsConfig": {"caFile": "/etc/ca.crt"}}
    return {"extenders": [{**extender, **tls, **changes}]}


def quota(hard: dict[str, str]) -> Item:
    return {"metadata": {"namespace": "team", "name": "gpu"}, "spec": {"hard": hard}}


def budget(*, ready: str = "True", exceeded: str = "False", hard: Any = None) -> Item:
    conditions = [
        {"type": "Ready", "status": ready, "message": "not counted yet"},
        {"type": "Exceeded", "status": exceeded, "message": "over by cores=30"},
    ]
    return {
        "kind": names.GPU_QUOTA,
        "metadata": {"namespace": "team", "name": "gpu", "uid": "u"},
        "spec": {"hard": hard or {"cores": 100}},
        "status": {"conditions": conditions},
    }


def crd(kind: str, *, version: str = VERSION, without: str = "") -> Item:
    spec = {"properties": {field: {"type": "object"} for field in SPEC.get(kind, frozenset()) - {without}}}
    schema = {"openAPIV3Schema": {"properties": {"spec": spec}}}
    return {"spec": {"versions": [{"name": version, "served": True, "schema": schema}]}}


DENIED: Final = (
    f'admission webhook "{names.webhook_name(names.MUTATE_PODS_PATH)}" denied the request: metadata.annotations: got'
    ' "{}"; only Halfcard may write this; remove it [HC020]'
)

HEALTHY: Final = Snapshot(
    now=NOW,
    settings_hash=settings_hash({}),
    api_server="v1.36.0",
    namespace={"metadata": {"name": names.NAMESPACE}, "status": {"phase": "Active"}},
    webhooks=(*registration(), {"kind": "MutatingWebhookConfiguration", "metadata": {"name": "other"}}),
    services={names.ADMISSION_SERVICE: {"spec": {}}, names.EXTENDER_SERVICE: {"spec": {}}},
    endpoints={names.ADMISSION_SERVICE: 2, names.EXTENDER_SERVICE: 2},
    bad=Probe(403, DENIED),
    good=Probe(201),
    secrets={
        names.ADMISSION_CA: SECRET,
        names.ADMISSION_TLS: SECRET,
        names.EXTENDER_TLS: {},
        names.ADMISSION_CALLERS: {"tokens": TOKEN.encode()},
        names.SCHEDULER_TLS: {"tls.crt": COPY.pem},
    },
    leases={names.EXTENDER_SERVICE: lease(), names.QUOTA_SERVICE: lease(), names.SCHEDULER_CONTACT: contact()},
    nodes=(node(), NodeSnapshot("cpu-1", {}, None, {}, {})),
    pods=(pod(), pod("waiting", node="", is_recorded=False), pod("old", created="2026-01-01", is_recorded=False)),
    counted_pods=30,
    own_pods=(own_pod(names.AGENT), own_pod(names.ADMISSION_SERVICE, node="cpu-1"), own_pod(names.CERTS_SERVICE)),
    workloads=(
        workload("DaemonSet", names.AGENT),
        workload("Deployment", names.ADMISSION_SERVICE),
        workload("Deployment", names.CERTS_SERVICE),
        workload("DaemonSet", "kube-proxy", namespace="kube-system", account="kube-proxy", config_maps=("kube-proxy",)),
    ),
    schedulers=(Scheduler("kube-system/kube-scheduler-a", "/etc/kubernetes/scheduler.yaml", scheduler()),),
    quotas=(
        quota({f"limits.{names.VCUDA_CORE}": "100", f"requests.{names.VCUDA_CORE}": "100", "pods": "10"}),
        quota({"requests.nvidia.com/mig-1g.5gb": "2", "limits.cpu": "4", "requests.example.com/fpga": "1"}),
    ),
    crds={name: crd(kind) for name, kind in CRDS.items()},
    budgets=(budget(),),
    ledgers={"gpuquota.team.gpu": ""},
)
