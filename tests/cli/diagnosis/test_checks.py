"""Nothing is found where nothing is wrong, and each fault is found as what it is, and as nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest
import yaml

from cli.diagnosis.checks import CHECKS, Diagnosis, diagnose
from cli.diagnosis.finding import several
from cli.diagnosis.own_objects import ContainerState
from cli.diagnosis.quotas.gpu_quota_checks import CRDS, SPEC, VERSION
from cli.diagnosis.snapshot import ABSENT, NotOfferedEvent, Probe, RefusedWorkload, Scheduler, Snapshot, UnreadSource
from extender.scheduler_api.scheduler_contact import HandshakeFailure
from halfcard import names
from halfcard.caller_tokens import path_with, split_path
from halfcard.dra.driver_nodes import DeviceClass
from settings.installation import Settings
from settings.sections import DerivedResources
from tests.builders import device_class
from tests.cli.command import ROOT

from . import planted, test_certificates
from .healthy import (
    CA,
    COPY,
    DAY,
    HEALTHY,
    LEAF,
    NOW,
    SECRET,
    TOKEN,
    Item,
    budget,
    bundle,
    contact,
    crd,
    lease,
    node,
    own_pod,
    pod,
    quota,
    registration,
    scheduler,
    workload,
)
from .papers import Paper, authority, leaf
from .planted import AGENT, process

FILTER: Final = "https://10.96.0.9:443/scheduler/filter"
REFUSED: Final = "connect: connection refused"

MUTATING, VALIDATING = registration()
ADMISSION: Final = names.ADMISSION_SERVICE
EXTENDER: Final = names.EXTENDER_SERVICE
GPU_CRD: Final = next(iter(CRDS))
LATER: Final = NOW - timedelta(minutes=10)


def at(hour: int) -> str:
    return f"2026-11-21T{hour:02}:00:00Z"


def trusting(text: str, *, of: str = "") -> Snapshot:
    return replace(HEALTHY, webhooks=registration(lambda webhook: webhook["clientConfig"].update(caBundle=text), of=of))


def registered(change: Callable[[Item], None], *, of: str) -> Snapshot:
    return replace(HEALTHY, webhooks=registration(change, of=of))


def elsewhere(webhook: Item) -> None:
    webhook["clientConfig"]["service"]["namespace"] = "other"


def by_address(path: str) -> Callable[[Item], None]:
    def change(webhook: Item) -> None:
        webhook["clientConfig"] = {"url": f"https://10.0.0.1:8443{path or webhook['clientConfig']['service']['path']}"}

    return change


def kept(**secrets: bytes) -> Snapshot:
    """The Secrets by the last word of their names, with what stands in both entries."""
    held = {name: {"tls.crt": pem, "ca.crt": pem} for name, pem in secrets.items()}
    found = {
        names.ADMISSION_CA: held.get("ca", SECRET),
        names.ADMISSION_TLS: held.get("admission", SECRET),
        names.EXTENDER_TLS: held.get("extender", SECRET),
    }
    return replace(HEALTHY, secrets=found)


def with_nodes(*nodes: Any, **changes: Any) -> Snapshot:
    return replace(HEALTHY, nodes=nodes, **changes)


def with_pods(*pods: Any) -> Snapshot:
    return replace(HEALTHY, pods=pods)


def led(name: str, found: Item | None) -> Snapshot:
    return replace(HEALTHY, leases={**HEALTHY.leases, name: found})


def called(caller: Paper = COPY, **seen: Any) -> Snapshot:
    return led(names.SCHEDULER_CONTACT, contact(caller, **seen))


def scheduled_by(file: str, configuration: Item | None) -> Snapshot:
    return replace(HEALTHY, schedulers=(Scheduler("kube-system/kube-scheduler-a", file, configuration),))


def with_second_scheduler(configuration: Item, image: str = "registry.example/kube-scheduler:v1.35.9") -> Snapshot:
    """A second scheduler, of which Halfcard serves the profile `halfcard-scheduler`."""
    second = Scheduler("halfcard-system/second", "/c/s.yaml", configuration, image)
    settings = Settings(set_scheduler_name=names.SCHEDULER)
    return replace(HEALTHY, settings=settings, schedulers=(*HEALTHY.schedulers, second))


def with_workload(*found: Any) -> Snapshot:
    return replace(HEALTHY, workloads=(*HEALTHY.workloads, *found))


def failing(why: str) -> Snapshot:
    name = names.webhook_name(names.VALIDATE_PODS_PATH)
    return replace(HEALTHY, good=Probe(500, f'Internal error occurred: failed calling webhook "{name}": {why}'))


@pytest.mark.parametrize("fault", ["a webhook leads to another Service", "the path is quoted by the API server"])
def test_no_finding_shows_a_caller_token(fault: str) -> None:
    quoted = failing(f'Post "https://halfcard-admission.halfcard-system.svc:443/{TOKEN}/validate/pods?timeout=5s": EOF')
    snapshot = quoted if "quoted" in fault else FAULTS[fault][0]
    found = str(diagnose(snapshot))
    assert "/validate/pods" in found and TOKEN not in found


def with_token(token: str) -> Callable[[Item], None]:
    """Registers another caller token."""

    def change(webhook: Item) -> None:
        service = webhook["clientConfig"]["service"]
        service["path"] = path_with(token, split_path(service["path"])[1])

    return change


OTHER_CA: Final = authority(NOW - DAY)
LATE_CA: Final = authority(NOW - 9 * 365 * DAY)
OLD_CA: Final = authority(NOW - 400 * DAY, 365 * DAY)
COUNTING: Final = Settings(derived_resources=DerivedResources(schedulers=[names.DEFAULT_SCHEDULER]))
SERVED: Final = f"{ADMISSION}.{names.NAMESPACE}.svc"
PEER: Final = workload("DaemonSet", "nvidia-device-plugin-daemonset", namespace="gpu", account="x", config_maps=())
NVIDIA: Final = PEER._replace(images=("registry.example:5000/nvidia/k8s-device-plugin:v0.17.0",))
HAMI: Final = workload("Deployment", "hami-scheduler", namespace="hami", images=("projecthami/hami:v2@sha256:0",))


def class_of(name: str, expression: str = "device.driver == 'gpu.nvidia.com'", **more: Any) -> DeviceClass:
    return msgspec.convert(device_class(name, expression, **more), DeviceClass)


def test_listed_classes_and_classes_of_other_devices_are_no_findings() -> None:
    nic = class_of("nic.example.com", "device.driver == 'nic.example.com'", resource=None)
    assert diagnose(replace(HEALTHY, device_classes=(class_of("gpu.nvidia.com"), nic))).findings == ()


NO_SCHEDULER_IMAGE: Final = own_pod(
    names.SCHEDULER, is_ready=False, container=ContainerState("kube-scheduler:v9", waits="ErrImagePull")
)

FAULTS: Final[dict[str, tuple[Snapshot, str, str]]] = {
    "no configuration is there": (
        replace(HEALTHY, webhooks=(MUTATING,)),
        "webhook-missing",
        "no webhook of Halfcard's",
    ),
    "one webhook is not registered": (
        replace(HEALTHY, webhooks=(MUTATING, {**VALIDATING, "webhooks": VALIDATING["webhooks"][1:]})),
        "webhook-missing",
        "no webhook validate-pods.halfcard.dev",
    ),
    "a webhook leads to another Service": (
        registered(elsewhere, of="validate-pods"),
        "webhook-elsewhere",
        "other/halfcard-admission/validate/pods",
    ),
    "a webhook leads to another path": (
        registered(by_address("/nowhere"), of="validate-pods"),
        "webhook-elsewhere",
        "10.0.0.1:8443/nowhere",
    ),
    "a webhook has a caller token that no replica accepts": (
        registered(with_token("f" * 64), of="validate-pods"),
        "webhook-unproven",
        "a caller token that no replica accepts",
    ),
    "a webhook has no caller token": (
        registered(with_token(""), of="validate-pods"),
        "webhook-unproven",
        "no caller token",
    ),
    "updates are not sent": (
        registered(lambda webhook: webhook["rules"][0].update(operations=["CREATE"]), of="validate-pods"),
        "webhook-blind",
        "UPDATE pods",
    ),
    "a subresource is not sent": (
        registered(lambda webhook: webhook["rules"].pop(), of="validate-pods"),
        "webhook-blind",
        "UPDATE pods/resize",
    ),
    "a validating webhook fails open": (
        registered(lambda webhook: webhook.update(failurePolicy="Ignore"), of="validate-pods"),
        "webhook-differs",
        "failurePolicy: Ignore",
    ),
    "a selector leaves objects out": (
        registered(lambda webhook: webhook.update(objectSelector={"matchLabels": {"a": "b"}}), of="mutate-pods"),
        "webhook-differs",
        "another objectSelector",
    ),
    "the conditions are those of another version": (
        registered(lambda webhook: webhook["matchConditions"].pop(), of="mutate-pods"),
        "webhook-differs",
        "another matchConditions",
    ),
    "the Service is gone": (
        replace(HEALTHY, services={ADMISSION: ABSENT, EXTENDER: ABSENT}),
        "service-missing",
        "it does not exist",
    ),
    "no replica is ready": (replace(HEALTHY, endpoints={EXTENDER: 1}), "service-empty", ADMISSION),
    "no replica of the extender is ready": (replace(HEALTHY, endpoints={ADMISSION: 1}), "service-empty", EXTENDER),
    "the CA is not that of what is shown": (
        failing("tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        "webhook-distrusted",
        "x509: certificate signed by unknown authority",
    ),
    "no answer": (failing("context deadline exceeded"), "webhook-unreachable", "context deadline exceeded"),
    "a bad pod passes": (replace(HEALTHY, bad=Probe(201)), "webhook-lets-pass", "would have stored it"),
    "only the validating webhook refuses": (
        replace(HEALTHY, bad=Probe(403, HEALTHY.bad.message.replace("mutate-", "validate-") if HEALTHY.bad else "")),
        "webhook-mute",
        "validate-pods.halfcard.dev refused",
    ),
    "somebody else refuses the good pod": (
        replace(HEALTHY, good=Probe(403, "violates PodSecurity")),
        "webhook-not-asked",
        "violates PodSecurity",
    ),
    "one of ours refuses it for no rule": (
        replace(HEALTHY, bad=Probe(403, HEALTHY.bad.message.replace("[HC020]", "") if HEALTHY.bad else "")),
        "webhook-not-asked",
        "denied the request",
    ),
    "no CA is named": (trusting(""), "ca-bundle-empty", "MutatingWebhookConfiguration halfcard"),
    "one webhook names no CA": (trusting("", of="validate-pods"), "ca-bundle-empty", "1 webhook (validate-pods"),
    "what is named is no CA": (trusting(bundle(b"no certificate")), "ca-bundle-garbage", "no certificate can be read"),
    "what is named is not even base64": (trusting("a"), "ca-bundle-garbage", "no certificate can be read"),
    "the CA has ended": (trusting(bundle(OLD_CA.pem)), "ca-bundle-expired", "all its CAs expired at 2026-10-17"),
    "another CA is trusted": (trusting(bundle(OTHER_CA.pem)), "certificate-mismatch", "none of its 1 certificates"),
    "the certificate is for another name": (
        kept(admission=leaf(CA, "other", NOW - DAY).pem),
        "certificate-mismatch",
        "its certificate is for other",
    ),
    "a Secret holds no certificate": (kept(extender=b"junk"), "certificate-unreadable", EXTENDER),
    "a certificate has ended": (
        kept(extender=leaf(CA, SERVED, NOW - 100 * DAY).pem),
        "certificate-expired",
        "tls.crt expired at 2026-11-11",
    ),
    "a certificate is not renewed": (
        kept(extender=leaf(CA, SERVED, NOW - 80 * DAY).pem),
        "certificate-expiring",
        "expires at 2026-12-01",
    ),
    "a CA is not renewed": (
        replace(trusting(bundle(LATE_CA.pem)), secrets={}),
        "certificate-expiring",
        "its last CA expires at 2027-11-2",
    ),
    **planted.INSTALLATION,
    **planted.PROCESSES,
    **planted.NODES,
    "no replica ever led": (led(EXTENDER, lease("")), "extender-not-led", "no replica holds it"),
    "no replica led since the Lease was created": (
        led(
            EXTENDER,
            {"metadata": {"creationTimestamp": "2026-11-21T11:59:00Z"}, "spec": {"holderIdentity": "nobody-yet"}},
        ),
        "extender-not-led",
        "no replica holds it",
    ),
    "the Lease is gone": (led(EXTENDER, dict(ABSENT)), "extender-not-led", "it does not exist"),
    "the leader is dead": (led(EXTENDER, lease(age_s=300)), "extender-not-led", "one renewed it last 300 s ago"),
    "the scheduler reads no file": (scheduled_by("", None), "scheduler-without-extender", "without --config"),
    "the scheduler's file has no extender": (
        scheduled_by("/etc/s.yaml", {"profiles": []}),
        "scheduler-without-extender",
        "/etc/s.yaml names no extender",
    ),
    "a second scheduler with a served profile has no extender": (
        with_second_scheduler({"profiles": [{"schedulerName": names.SCHEDULER}]}),
        "scheduler-without-extender",
        "pod halfcard-system/second: /c/s.yaml names no extender",
    ),
    "a second scheduler is newer than the API server": (
        with_second_scheduler(scheduler(), image="registry.example:5000/kube-scheduler:v1.37.2"),
        "scheduler-version",
        "it runs registry.example:5000/kube-scheduler:v1.37.2; the API server is v1.36.0",
    ),
    "a second scheduler is two versions older": (
        with_second_scheduler(scheduler(), image="kube-scheduler:v1.34.0@sha256:0"),
        "scheduler-version",
        "kube-scheduler:v1.34.0",
    ),
    "the image of Halfcard's own scheduler is nowhere": (
        replace(HEALTHY, own_pods=(*HEALTHY.own_pods, NO_SCHEDULER_IMAGE)),
        "image-missing",
        "ErrImagePull: kube-scheduler:v9",
    ),
    "Halfcard's own scheduler is scaled to zero": (
        with_workload(workload("Deployment", names.SCHEDULER, images=("kube-scheduler:v1.36.0",), is_off=True)),
        "scaled-to-zero",
        names.SCHEDULER,
    ),
    "a resource that nodes offer is not managed": (
        scheduled_by("/etc/s.yaml", scheduler(managedResources=[{"name": names.VCUDA_CORE}])),
        "scheduler-misconfigured",
        f"lacks {names.VCUDA_MEMORY}",
    ),
    "the extender does not bind": (
        scheduled_by("/etc/s.yaml", scheduler(bindVerb="")),
        "scheduler-misconfigured",
        "no bindVerb",
    ),
    "the extender is ignorable": (
        scheduled_by("/etc/s.yaml", scheduler(ignorable=True)),
        "scheduler-misconfigured",
        "ignorable",
    ),
    "the extender's certificate is not verified": (
        scheduled_by("/etc/s.yaml", scheduler(tlsConfig={"certFile": "/etc/tls.crt", "keyFile": "/etc/tls.key"})),
        "scheduler-misconfigured",
        "without caFile",
    ),
    "a scheduler asks for what only quotas count": (
        replace(scheduled_by("/etc/s.yaml", scheduler()), settings=COUNTING),
        "scheduler-asks-derived",
        "profile default-scheduler does not ignore quota.halfcard.dev",
    ),
    "a scheduler found none of what only quotas count": (
        replace(with_pods(pod(node="")), settings=COUNTING, schedulers=(), short_of_derived=("team/gone", "team/work")),
        "scheduler-asks-derived",
        "1 pod (team/work)",
    ),
    "the newest pod has no record": (
        with_pods(pod(), pod("new", created="2026-11-21T11:00:00Z", is_recorded=False)),
        "scheduler-past-extender",
        "team/new",
    ),
    "the newest pod has no record, and there was no card for it": (
        replace(
            with_pods(pod(), pod("new", created="2026-11-21T11:00:00Z", is_recorded=False)),
            doubts=("pod team/new on node gpu-1: it has no usable record of its cards, and more than is left on any",),
        ),
        "scheduler-past-extender",
        "team/new",
    ),
    "the agent recorded the newest pod": (
        with_pods(pod(), pod("new", created="2026-11-21T11:00:00Z", by_agent=True)),
        "scheduler-past-extender",
        "team/new of 2026-11-21T11:00:00Z, was bound without the extender: its node's agent chose its cards",
    ),
    "one resource is never sent to the extender": (
        with_pods(
            pod("before", created=at(9)),
            pod("past", created=at(10), resources=(names.NVIDIA_GPU,), by_agent=True),
            pod("after", created=at(11)),
        ),
        "scheduler-past-extender",
        f"pods that request {names.NVIDIA_GPU}: the newest one, team/past",
    ),
    "the scheduler cannot reach the extender": (
        with_pods(pod(node="", is_recorded=False, message=f'Post "{FILTER}": dial tcp 10.96.0.9:443: {REFUSED}')),
        "scheduler-cannot-call",
        f"1 waiting pod (team/work): the scheduler's call of {FILTER} fails: dial tcp",
    ),
    "the scheduler sees a closed connection, and the extender knows why": (
        replace(
            called(failed={HandshakeFailure.EXPIRED: NOW - timedelta(minutes=1)}),
            pods=(pod(node="", is_recorded=False, message=f'Post "{FILTER}": EOF'),),
        ),
        "scheduler-cannot-call",
        "fails: EOF; the extender refused 10.0.0.1: client certificate expired",
    ),
    "the scheduler's certificate has expired, and no pod waits": (
        called(leaf(CA, "kube-scheduler", NOW - 91 * DAY)),
        "scheduler-certificate-expired",
        "scheduler at 10.0.0.1: its client certificate ended at 2026-11-20T12:00:00Z",
    ),
    "the scheduler's certificate expires soon": (
        replace(called(leaf(CA, "kube-scheduler", NOW - 61 * DAY)), secrets={}),
        "scheduler-certificate-old",
        "its client certificate ends at 2026-12-20T12:00:00Z",
    ),
    "the scheduler has a copy of an earlier certificate": (
        called(leaf(CA, "kube-scheduler", NOW - 2 * DAY)),
        "scheduler-certificate-old",
        "ends at 2027-02-17T12:00:00Z, that of the Secret at 2036-",
    ),
    "a handshake failed, and no call came since": (
        called(failed={HandshakeFailure.MISSING: NOW - timedelta(minutes=1)}),
        "scheduler-handshake",
        "no handshake with 10.0.0.1: no client certificate",
    ),
    "no scheduler has ever called": (called(asked=None), "scheduler-never-called", "no scheduler has called it yet"),
    "an older pod has none": (
        with_pods(pod("older", is_recorded=False), pod("new", created="2026-11-21T11:00:00Z")),
        "pods-unrecorded",
        "1 pod (team/older)",
    ),
    "kube-scheduler does not run": (
        with_pods(pod(node="", is_recorded=False, is_untried=True)),
        "scheduler-silent",
        "scheduler default-scheduler: it has not tried 1 pod (team/work)",
    ),
    "pods name a scheduler that does not exist": (
        with_pods(*(pod(name, node="", scheduler="volcano", is_untried=True) for name in "ab")),
        "scheduler-absent",
        "scheduler volcano: it has not tried 2 pods (team/a, team/b)",
    ),
    "another scheduler bound it": (
        with_pods(pod(scheduler="own", is_recorded=False)),
        "scheduler-foreign",
        "1 pod (team/work)",
    ),
    "the agent never said a word": (with_nodes(node(cards=None, condition={}, offers={})), "agent-missing", "no agent"),
    "the agent has no pod": (process(AGENT), "agent-missing", "no pod of the agent"),
    "kubelet has lost the agent": (
        with_nodes(node(offers={names.VCUDA_CORE: 0})),
        "agent-unregistered",
        "2 healthy cards",
    ),
    "the driver is gone": (
        with_nodes(node(condition={"status": "False", "reason": "DriverUnavailable", "message": "no NVML"})),
        "driver-unavailable",
        "no NVML",
    ),
    "a card is sick": (
        with_nodes(node(condition={"status": "False", "reason": "CardsOutOfOrder", "message": "card 1: Xid 79"})),
        "cards-out-of-order",
        "Xid 79",
    ),
    "a node cannot hold shares": (
        with_nodes(node(isolation={"status": "False", "reason": "SharesNotHeld", "message": "no CDI"})),
        "shares-not-held",
        "no CDI",
    ),
    "another plugin has the resource": (
        replace(HEALTHY, not_offered=(NotOfferedEvent("gpu-1", "another plugin serves it", LATER),) * 2),
        "not-offered",
        "another plugin serves it",
    ),
    "a node has GPUs and no agent": (
        with_nodes(node(), node("gpu-2", labels={}, cards=None, condition={})),
        "node-without-agent",
        "1 node (gpu-2)",
    ),
    "an agent was taken away": (
        with_nodes(node(), node("gpu-2", labels={})),
        "inventory-left-behind",
        "an inventory of 2 healthy cards",
    ),
    "a node cannot be believed": (
        replace(HEALTHY, doubts=('node gpu-1 is left out: status.capacity: got "half a card"; no',)),
        "node-left-out",
        "half a card",
    ),
    "a waiting pod has a record": (
        with_pods(pod(node="", is_recorded=False, forged=(names.PLACEMENT,))),
        "record-forged",
        names.PLACEMENT,
    ),
    "a record names a card that is not there": (
        replace(HEALTHY, doubts=("pod team/work on node gpu-1: its record names cards that the node does not have",)),
        "record-doubtful",
        "names cards that the node does not have",
    ),
    "a pod asks for nonsense": (
        replace(HEALTHY, doubts=('pod team/work: spec.containers[0]: got "150"; no',)),
        "pod-unplaceable",
        "150",
    ),
    "a quota never counts": (
        replace(HEALTHY, quotas=(quota({f"limits.{names.VCUDA_CORE}": "100"}),)),
        "quota-uncounted",
        f"limits.{names.VCUDA_CORE}",
    ),
    "a quota's key is misspelled": (
        replace(HEALTHY, quotas=(quota({f"requests.{names.VCUDA_CORE}s": "100"}),)),
        "quota-unknown-key",
        f"requests.{names.VCUDA_CORE}s",
    ),
    "a quota's amount means nothing": (
        replace(HEALTHY, quotas=(quota({f"requests.{names.VCUDA_CORE}": "1.005"}),)),
        "quota-amount",
        "1.005",
    ),
    "a definition is gone": (
        replace(HEALTHY, crds={**HEALTHY.crds, GPU_CRD: ABSENT}),
        "crd-missing",
        "it does not exist",
    ),
    "a definition is older": (
        replace(HEALTHY, crds={**HEALTHY.crds, GPU_CRD: crd(CRDS[GPU_CRD], without="byModel")}),
        "crd-old",
        "spec.byModel",
    ),
    "a definition is of another version": (
        replace(HEALTHY, crds={**HEALTHY.crds, GPU_CRD: crd(CRDS[GPU_CRD], version="v1")}),
        "crd-old",
        "v1alpha1",
    ),
    "a quota cannot be read": (
        replace(HEALTHY, budgets=(budget(hard={"cores": "many"}),)),
        "budget-unreadable",
        "cores",
    ),
    "no quota service leads": (led(names.QUOTA_SERVICE, lease("")), "quota-service-not-led", "no replica holds it"),
    "a ledger is garbage": (
        replace(HEALTHY, ledgers={"gpuquota.team.gpu": "holds no ledger"}, budgets=(budget(ready="False"),)),
        "ledger-broken",
        "holds no ledger",
    ),
    "a quota is not counted": (
        replace(HEALTHY, budgets=(budget(ready="False"),)),
        "budget-not-counted",
        "not counted",
    ),
    "a quota is exceeded": (replace(HEALTHY, budgets=(budget(exceeded="True"),)), "budget-exceeded", "cores=30"),
    "NVIDIA's plugin is on our node": (
        replace(with_workload(NVIDIA), daemons={(NVIDIA.namespace, NVIDIA.name): frozenset({"gpu-1"})}),
        "peer-plugin",
        "1 node (gpu-1)",
    ),
    "HAMi's scheduler is there": (with_workload(HAMI), "peer-scheduler", "HAMi's scheduler"),
    "the settings are none": (replace(HEALTHY, settings_problem="unknown key"), "settings-unusable", "unknown key"),
    "one process has other settings": (
        with_workload(workload("Deployment", EXTENDER, config_maps=("theirs",))),
        "settings-differ",
        "mounts theirs",
    ),
    "refused workload": (
        replace(HEALTHY, refused=(RefusedWorkload("DaemonSet monitoring/node-exporter", "got; rule; fix [HC024]"),)),
        "workload-refused",
        "DaemonSet monitoring/node-exporter: got; rule; fix [HC024]",
    ),
    "a class has whole cards and is not listed": (
        replace(HEALTHY, device_classes=(class_of("own", "device.driver == 'own.example.com'"),)),
        "device-class-unlisted",
        "device class own: has nvidia.com/gpu, and claims of it are not refused",
    ),
    "a class of NVIDIA's driver is not listed": (
        replace(HEALTHY, device_classes=(class_of("large", resource=None),)),
        "device-class-unlisted",
        "device class large: selects devices of gpu.nvidia.com",
    ),
    "a class names no driver": (
        replace(HEALTHY, device_classes=(class_of("any", "true", resource=None),)),
        "device-class-unlisted",
        "device class any: names no driver",
    ),
    "the settings have no ConfigMap": (
        replace(HEALTHY, settings_hash=""),
        "settings-unusable",
        "it does not exist, and Halfcard's processes mount it",
    ),
    "the settings were changed since": (
        replace(HEALTHY, settings_changed=LATER, settings_hash="other"),
        "settings-outdated",
        "3 pods",
    ),
    "something may not be read": (
        replace(HEALTHY, unread=(UnreadSource("GET /x", "forbidden"),)),
        "not-looked-at",
        "forbidden",
    ),
}


def test_a_healthy_snapshot_has_no_findings() -> None:
    assert diagnose(HEALTHY) == Diagnosis(())


@pytest.mark.parametrize(("snapshot", "check", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_each_fault_is_found_by_its_check_and_by_no_other(snapshot: Snapshot, check: str, message: str) -> None:
    findings = diagnose(snapshot).findings
    assert {each.check for each in findings} == {check}
    assert message in f"{findings[0].where}: {findings[0].got}"
    assert all(each.rule and each.fix for each in findings)


def test_every_check_has_a_fault_that_it_finds() -> None:
    others = {check for _, check in test_certificates.SPOILED.values()}
    assert {check.name for check in CHECKS} == {check for _, check, _ in FAULTS.values()} | others


def test_every_check_is_named_once_and_every_cause_is_a_check() -> None:
    known = [check.name for check in CHECKS]
    assert len(set(known)) == len(known)
    assert {cause for check in CHECKS for cause in check.unless} <= set(known)


HARMLESS: Final[dict[str, Snapshot]] = {
    "the extender runs beside the scheduler, and its Service leads nowhere": replace(
        with_workload(
            workload("Deployment", EXTENDER, is_off=True),
            workload("Deployment", f"{EXTENDER}-beside", account=EXTENDER),
        ),
        endpoints={ADMISSION: 2},
    ),
    "a second scheduler calls the extender, and the cluster's own one is not served": replace(
        with_second_scheduler({**scheduler(), "profiles": [{"schedulerName": names.SCHEDULER}]}),
        settings=Settings(schedulers=[names.SCHEDULER], set_scheduler_name=names.SCHEDULER),
        schedulers=(
            Scheduler("kube-system/kube-scheduler-a", "", None, "kube-scheduler:v1.36.0"),
            Scheduler(
                "halfcard-system/second",
                "/c/s.yaml",
                {**scheduler(), "profiles": [{"schedulerName": names.SCHEDULER}]},
                "kube-scheduler:v1.35.9",
            ),
        ),
        pods=(),
    ),
    "a scheduler that Halfcard does not serve has no extender": with_second_scheduler(
        {"profiles": [{"schedulerName": "batch"}]}
    ),
    "the image of a scheduler has no version": with_second_scheduler(scheduler(), image="kube-scheduler@sha256:0"),
    **planted.PECULIAR,
    "webhooks are called at an address": registered(by_address(""), of=""),
    "more is sent than need be": registered(
        lambda webhook: webhook.update(rules=[{"apiGroups": ["*"], "resources": ["*/*"], "operations": ["*"]}]), of=""
    ),
    "defaults are not written out": registered(lambda webhook: webhook.pop("objectSelector"), of=""),
    "both CAs are trusted while one replaces the other": trusting(bundle(OTHER_CA.pem + CA.pem)),
    "an old CA is still there": trusting(bundle(OLD_CA.pem + CA.pem)),
    "the certificate comes with its CA": kept(admission=LEAF.pem + CA.pem),
    "Secrets may not be read": replace(HEALTHY, secrets=dict.fromkeys(HEALTHY.secrets)),
    "configurations may not be read": replace(HEALTHY, webhooks=None),
    "there is no Service of the extender": replace(HEALTHY, services={**HEALTHY.services, EXTENDER: ABSENT}),
    "no pod could be tried": replace(HEALTHY, bad=None, good=None),
    "Leases may not be read": replace(HEALTHY, leases=dict.fromkeys(HEALTHY.leases)),
    "no GpuQuota, and no quota process": replace(
        HEALTHY, leases={EXTENDER: lease(), names.QUOTA_SERVICE: ABSENT}, budgets=(), ledgers={}
    ),
    "another program renews them": replace(process(names.CERTS_SERVICE), workloads=HEALTHY.workloads[:1]),
    "no quota service runs, and there is no quota": replace(
        HEALTHY, workloads=(*HEALTHY.workloads, workload("Deployment", names.QUOTA_SERVICE, is_off=True)), budgets=()
    ),
    "the extender is beside the scheduler, and called without TLS": scheduled_by(
        "/etc/s.yaml", scheduler(enableHTTPS=False, tlsConfig=None)
    ),
    "the CA of the extender stands in the configuration itself": scheduled_by(
        "/etc/s.yaml", scheduler(tlsConfig={"caData": "Q0E="})
    ),
    "the scheduler's file lies on a disk": scheduled_by("/etc/s.yaml", None),
    "the extender is sent every pod": scheduled_by("/etc/s.yaml", scheduler(managedResources=[])),
    "pods were bound by counts until the scheduler called the extender": with_pods(
        pod("first", created=at(9), resources=(names.NVIDIA_GPU,), by_agent=True), pod("then", created=at(10))
    ),
    "a handshake failed before the last call": called(
        asked=NOW - timedelta(minutes=1), failed={HandshakeFailure.EXPIRED: NOW - timedelta(minutes=2)}
    ),
    "a handshake failed long ago": called(failed={HandshakeFailure.EXPIRED: NOW - timedelta(hours=2)}),
    "another issuer makes the scheduler's certificate": called(
        leaf(CA, "another", NOW - 2 * DAY, title="system:kube-scheduler")
    ),
    "the Lease of contacts is of an earlier version": led(names.SCHEDULER_CONTACT, dict(ABSENT)),
    "a pod waits for a card": with_pods(pod(node="", is_recorded=False, message="0/3 nodes are available: 3 no card.")),
    "a static pod asks for a card": with_pods(pod(is_static=True, is_recorded=False)),
    "what was not offered is offered again": replace(
        HEALTHY,
        not_offered=(NotOfferedEvent("gpu-1", "no", LATER, is_over=True), NotOfferedEvent("gpu-1", "no", LATER)),
    ),
    "what was not offered is an old story": replace(HEALTHY, not_offered=(NotOfferedEvent("gpu-1", "no", NOW - DAY),)),
    "a node's cards are all sick, and offered no more": with_nodes(node(cards=0, offers={})),
    "agents are no pods": replace(HEALTHY, own_pods=HEALTHY.own_pods[1:], workloads=HEALTHY.workloads[1:]),
    "something else lives in our namespace": with_workload(
        workload("Deployment", "other", account="other", config_maps=("its-own",))
    ),
    "HAMi's scheduler is scaled to zero": with_workload(HAMI._replace(is_off=True)),
    "NVIDIA's plugin is kept off our nodes": with_workload(NVIDIA),
    "a peer's plugin serves what ours does not": with_workload(NVIDIA._replace(images=("k8s-gpushare-plugin:v2",))),
    "a pod of ours is just starting beside a ready one": replace(
        HEALTHY, own_pods=(*HEALTHY.own_pods, own_pod(EXTENDER), own_pod(EXTENDER, is_ready=False, since=NOW))
    ),
    "the settings are older than the pods": replace(HEALTHY, settings_changed=NOW - 2 * DAY, settings_hash="other"),
    "the settings were changed back": replace(HEALTHY, settings_changed=LATER),
    "a twin follows its source": replace(
        HEALTHY,
        quotas=(quota({names.VCUDA_CORE: "100", f"requests.{names.VCUDA_CORE}": "100"}),),
    ),
}


@pytest.mark.parametrize("snapshot", HARMLESS.values(), ids=HARMLESS.keys())
def test_unusual_but_harmless_snapshots_have_no_findings(snapshot: Snapshot) -> None:
    assert diagnose(snapshot) == Diagnosis(())


def test_pods_that_bypass_the_extender_are_not_reported_next_to_a_configuration_that_lacks_their_resource() -> None:
    lacking = scheduled_by("/etc/s.yaml", scheduler(managedResources=[{"name": names.VCUDA_CORE}]))
    both = replace(lacking, pods=(pod(resources=(names.VCUDA_MEMORY,), by_agent=True),))
    assert {each.check for each in diagnose(both).findings} == {"scheduler-misconfigured"}


def test_a_symptom_is_not_reported_next_to_its_cause() -> None:
    broken = failing("tls: failed to verify certificate: x509: certificate signed by unknown authority")
    both = replace(broken, webhooks=trusting("").webhooks)
    found = diagnose(both)
    assert {each.check for each in found.findings} == {"ca-bundle-empty"}
    assert {each.check: each.cause for each in found.consequences} == {"webhook-distrusted": "ca-bundle-empty"}


@pytest.mark.parametrize("kind", SPEC)
def test_the_shipped_crds_have_the_fields_that_the_checks_read(kind: str) -> None:
    """A field that is new in one of them is new in the other."""
    files = [file for file in (ROOT / "deploy" / "crds").glob("*.yaml") if f"kind: {kind}\n" in file.read_text()]
    (version,) = yaml.safe_load(files[0].read_text())["spec"]["versions"]
    assert version["name"] == VERSION
    assert set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]) == SPEC[kind]


def test_only_the_first_of_many_are_named() -> None:
    assert several(["a"], "node") == "1 node (a)"
    assert several(["a", "b", "c", "d"], "node") == "4 nodes (a, b, c, …)"
