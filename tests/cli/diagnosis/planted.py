"""Faults of installations, processes and nodes, each planted with the symptoms that a cluster then shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from cli.diagnosis.own_objects import ContainerState, MissingRight, OwnPod, Taint, TaintToleration
from cli.diagnosis.processes.expected_rights import ALWAYS
from cli.diagnosis.snapshot import ABSENT, NodeSystem, Probe, Snapshot
from halfcard import names

from .healthy import HEALTHY, NOW, budget, lease, node, own_pod, registration, workload

Faults = dict[str, tuple[Snapshot, str, str]]

ADMISSION: Final = names.ADMISSION_SERVICE
EXTENDER: Final = names.EXTENDER_SERVICE
QUOTA: Final = names.QUOTA_SERVICE
CERTS: Final = names.CERTS_SERVICE
AGENT: Final = names.AGENT
LATER: Final = NOW - timedelta(minutes=10)
DEAD: Final = lease(age_s=300)
IMAGE: Final = "halfcard.dev/halfcard:1"

ALL: Final = replace(
    HEALTHY,
    own_pods=(*HEALTHY.own_pods, own_pod(EXTENDER), own_pod(QUOTA)),
    workloads=(*HEALTHY.workloads, workload("Deployment", EXTENDER), workload("Deployment", QUOTA)),
)
"""An installation whose processes all run as pods."""


def process(account: str, *pods: Any, of: Snapshot = HEALTHY, **changes: Any) -> Snapshot:
    """Returns a snapshot with other pods of a process, and its workload changed."""
    others = [each for each in of.own_pods if each.account != account]
    workloads = [each._replace(**changes) if each.account == account else each for each in of.workloads]
    return replace(of, own_pods=(*others, *pods), workloads=tuple(workloads))


def stuck(account: str, *, of: Snapshot = ALL, unscheduled: str = "", **state: Any) -> Snapshot:
    """Returns a snapshot in which the only pod of a process does not run."""
    container = ContainerState(image=IMAGE)._replace(**state)
    place = "" if unscheduled else "gpu-1"
    pod = own_pod(account, is_ready=False, since=LATER, container=container, unscheduled=unscheduled, node=place)
    return process(account, pod, of=of)


def starting(account: str) -> OwnPod:
    container = ContainerState(image=IMAGE, waits="ContainerCreating")
    return own_pod(account, is_ready=False, since=NOW - timedelta(seconds=40), container=container, node="gpu-1")


def unserved(snapshot: Snapshot) -> Snapshot:
    """Adds what a cluster shows while the webhook does not answer."""
    name = names.webhook_name(names.VALIDATE_PODS_PATH)
    refused = Probe(500, f'failed calling webhook "{name}": dial tcp 10.0.0.1:443: connection refused')
    return replace(snapshot, endpoints={EXTENDER: 2}, good=refused, bad=refused)


def unregistered(snapshot: Snapshot) -> Snapshot:
    """Adds what a cluster shows before the certificate controller has registered the webhooks."""
    empty = tuple({**each, "webhooks": []} for each in registration())
    return replace(snapshot, webhooks=empty, endpoints={EXTENDER: 2}, bad=Probe(201), good=Probe(201))


def unled(snapshot: Snapshot, name: str = EXTENDER) -> Snapshot:
    endpoints = {ADMISSION: 2} if name == EXTENDER else HEALTHY.endpoints
    return replace(snapshot, leases={**HEALTHY.leases, name: DEAD}, endpoints=endpoints)


def uncounted(snapshot: Snapshot) -> Snapshot:
    return replace(unled(snapshot, QUOTA), budgets=(budget(ready="False"),))


def without(account: str, *rights: str) -> Snapshot:
    """Returns a snapshot in which a process lacks rights, such as `list nodes`."""
    (shipped, *_) = [each for each in ALWAYS if each.account == account]
    lost = [right.partition(" ") for right in rights]
    role = f"ClusterRole {account}"
    missing = [MissingRight(account, verb, what, "", role, shipped.file_name) for verb, _, what in lost]
    return replace(ALL, missing_rights=tuple(missing))


def unannounced(snapshot: Snapshot, **changes: Any) -> Snapshot:
    """Adds what a node shows on which no agent ever worked."""
    return replace(snapshot, nodes=(node(cards=None, condition={}, offers={}, **changes), *HEALTHY.nodes[1:]))


NOTHING: Final = replace(
    HEALTHY,
    webhooks=(),
    services={ADMISSION: ABSENT, EXTENDER: ABSENT},
    endpoints={},
    bad=Probe(201),
    leases={EXTENDER: ABSENT, QUOTA: ABSENT},
    namespace=ABSENT,
    own_pods=(),
    workloads=HEALTHY.workloads[-1:],
    crds=dict.fromkeys(HEALTHY.crds, ABSENT),
    secrets={},
    settings_hash="",
    budgets=(),
    ledgers={},
)
"""A cluster without Halfcard."""

FOREIGN: Final = [each._replace(namespace="gpu") for each in ALL.workloads if each.account != "kube-proxy"]
INSTALLATION: Final[Faults] = {
    "Halfcard was never installed": (NOTHING, "not-installed", "no webhook, Service, Lease or workload"),
    "Halfcard was removed, and its CRDs are left": (replace(NOTHING, crds=HEALTHY.crds), "not-installed", "no webhook"),
    "the namespace was deleted, and the webhooks are left": (
        unserved(replace(NOTHING, webhooks=registration(), crds=HEALTHY.crds)),
        "namespace-missing",
        "it does not exist",
    ),
    "the namespace cannot be deleted": (
        replace(HEALTHY, namespace={"status": {"phase": "Terminating"}}),
        "namespace-missing",
        "it is being deleted",
    ),
    "a second installation is in another namespace": (
        replace(ALL, workloads=(*ALL.workloads, FOREIGN[1])),
        "installed-elsewhere",
        "Deployment gpu/halfcard-admission",
    ),
    "the only installation is in another namespace": (
        replace(NOTHING, workloads=tuple(FOREIGN), crds=HEALTHY.crds, webhooks=registration()),
        "namespace-missing",
        "it does not exist",
    ),
    "the processes run two images": (
        process(EXTENDER, own_pod(EXTENDER), of=ALL, images=("halfcard.dev/halfcard:2",)),
        "versions-differ",
        "Deployment halfcard-system/halfcard-extender runs halfcard.dev/halfcard:2",
    ),
    "the selector of the webhook's Service was edited": (
        unserved(ALL),
        "service-empty",
        "its selector leads to none of 1 ready pod (halfcard-admission-x)",
    ),
    "the port of the webhook's Service was edited": (
        replace(
            ALL,
            good=Probe(
                500,
                f'failed calling webhook "{registration()[1]["webhooks"][0]["name"]}": no service'
                ' port 443 found for service "halfcard-admission"',
            ),
        ),
        "webhook-unreachable",
        "no service port 443",
    ),
    "the Deployment of the webhook was deleted": (
        unserved(
            replace(process(ADMISSION, of=ALL), workloads=tuple(w for w in ALL.workloads if w.account != ADMISSION))
        ),
        "service-empty",
        "no Deployment creates any",
    ),
    "the Service of the extender was deleted": (
        replace(ALL, services={**ALL.services, EXTENDER: ABSENT}, endpoints={ADMISSION: 2}),
        "service-missing",
        EXTENDER,
    ),
}

NEVER: Final[dict[str, Any]] = {
    "waits": "ErrImagePull",
    "message": 'failed to resolve reference "halfcard.dev/halfcard:1"',
}
CRASH: Final[dict[str, Any]] = {"waits": "CrashLoopBackOff", "restarts": 5, "exit_code": 2, "ended": "Error"}
QUOTA_SAYS: Final = 'pods "halfcard-extender-1" is forbidden: exceeded quota: tight, requested: pods=1, used: pods=3'
PROCESSES: Final[Faults] = {
    "the image is on no node, after a first installation": (
        unregistered(stuck(ADMISSION, **NEVER)),
        "image-missing",
        "pod halfcard-system/halfcard-admission-x on node gpu-1: ErrImagePull: halfcard.dev/halfcard:1",
    ),
    "the image of the extender cannot be pulled": (
        unled(stuck(EXTENDER, waits="ImagePullBackOff", message="401 Unauthorized")),
        "image-missing",
        "401 Unauthorized",
    ),
    "the image of the agent is not on its node": (
        unannounced(stuck(AGENT, waits="ErrImageNeverPull")),
        "image-missing",
        "halfcard-agent-x on node gpu-1: ErrImageNeverPull",
    ),
    "the webhook ends because of an option": (
        unserved(stuck(ADMISSION, **CRASH, last_line="error: unrecognized arguments: --banana")),
        "process-crashes",
        "exit code 2 (the arguments, the settings or the input cannot be used): error: unrecognized arguments",
    ),
    "the extender has too little memory": (
        unled(stuck(EXTENDER, waits="CrashLoopBackOff", restarts=3, exit_code=137, ended="OOMKilled")),
        "process-crashes",
        "ended after 3 restarts: OOMKilled, exit code 137",
    ),
    "the quota service ends, and has started again": (
        uncounted(stuck(QUOTA, restarts=1, exit_code=3, last_line="cannot listen")),
        "process-crashes",
        "ended after 1 restart: exit code 3 (a process cannot start or go on",
    ),
    "all processes end because of a typing error in the settings": (
        replace(unled(unserved(stuck(ADMISSION, **CRASH))), settings_problem="packing: unknown", settings_hash=None),
        "settings-unusable",
        "packing: unknown",
    ),
    "the webhook is scaled to zero": (
        unserved(process(ADMISSION, of=ALL, is_off=True)),
        "scaled-to-zero",
        f"Deployment halfcard-system/{ADMISSION}: it is scaled to zero",
    ),
    "the extender is scaled to zero": (unled(process(EXTENDER, of=ALL, is_off=True)), "scaled-to-zero", EXTENDER),
    "the quota service is scaled to zero": (uncounted(process(QUOTA, of=ALL, is_off=True)), "scaled-to-zero", QUOTA),
    "the certificate controller is scaled to zero, and the webhooks were edited": (
        replace(process(CERTS, of=ALL, is_off=True), webhooks=registration(lambda w: w.update(failurePolicy="Ignore"))),
        "scaled-to-zero",
        CERTS,
    ),
    "a ResourceQuota refuses the pods of the extender": (
        unled(process(EXTENDER, of=ALL, lacks=2, refusal=QUOTA_SAYS)),
        "pods-not-created",
        "2 of its pods are not created: pods",
    ),
    "a Pod Security standard refuses the agent": (
        unannounced(process(AGENT, of=ALL, lacks=1, refusal='violates PodSecurity "restricted:latest"')),
        "pods-not-created",
        "1 of its pods is not created",
    ),
    "no node has room for the webhook": (
        unserved(stuck(ADMISSION, unscheduled="0/3 nodes are available: 3 Insufficient cpu.")),
        "pod-unscheduled",
        "3 Insufficient cpu",
    ),
    "the certificate controller is not ready": (
        process(CERTS, own_pod(CERTS, is_ready=False, since=LATER), of=ALL),
        "process-not-ready",
        CERTS,
    ),
    "the webhook is only starting": (
        unserved(process(ADMISSION, starting(ADMISSION), of=ALL)),
        "process-starting",
        f"1 pod ({ADMISSION}-x) starting: ContainerCreating",
    ),
    "the certificate controller is only starting": (
        process(CERTS, starting(CERTS), of=ALL),
        "process-starting",
        "starting: ContainerCreating",
    ),
    "a container waits for its Secret": (
        unserved(stuck(ADMISSION, waits="ContainerCreating")),
        "process-not-ready",
        "not ready since 2026-11-21T11:50:00Z: ContainerCreating",
    ),
    "the webhook may not follow nodes": (
        replace(without(ADMISSION, "list nodes", "watch nodes"), endpoints={EXTENDER: 2}),
        "right-missing",
        "it may not list and watch nodes: ClusterRole halfcard-admission or its binding",
    ),
    "the extender may not bind": (
        unled(without(EXTENDER, "create pods/binding")),
        "right-missing",
        "create pods/binding",
    ),
    "the agent may not write to its node": (
        unannounced(without(AGENT, "patch nodes")),
        "right-missing",
        "it may not patch nodes",
    ),
    "the certificate controller may not repair webhooks": (
        replace(without(CERTS, "patch x"), webhooks=registration(lambda each: each.update(failurePolicy="Ignore"))),
        "right-missing",
        CERTS,
    ),
    "the quota service may not write statuses": (
        uncounted(without(QUOTA, "patch gpuquotas/status")),
        "right-missing",
        "patch gpuquotas/status",
    ),
}

TAINT: Final = Taint("gpu", "dedicated", "NoSchedule")
NODES: Final[Faults] = {
    "the API server is too old": (
        replace(HEALTHY, api_server="v1.29.3+k3s1"),
        "version-unsupported",
        "the API server: v1.29.3",
    ),
    "a kubelet is too old": (
        replace(HEALTHY, nodes=(node(system=NodeSystem("v1.33.9", "containerd://2.4.0", "amd64")),)),
        "version-unsupported",
        "kubelet of 1 node (gpu-1): v1.33.9",
    ),
    "Kubernetes is newer than tested": (replace(HEALTHY, api_server="v1.37.0"), "version-untested", "v1.37.0"),
    "a runtime was never tested": (
        replace(HEALTHY, nodes=(node(system=NodeSystem("v1.36.0", "cri-o://1.36.0", "amd64")),)),
        "version-untested",
        "cri-o://1.36.0",
    ),
    "a runtime is too old for CDI": (
        unannounced(stuck(AGENT), system=NodeSystem("v1.36.0", "containerd://1.6.8", "amd64")),
        "runtime-unsupported",
        "containerd://1.6.8",
    ),
    "a node has another processor": (
        unannounced(stuck(AGENT, **CRASH), system=NodeSystem("v1.36.0", "containerd://2.4.0", "arm64")),
        "architecture-unsupported",
        "arm64; the image is made for amd64",
    ),
    "the kubelet of a node has ended": (
        unannounced(stuck(AGENT), unready="Ready is Unknown: Kubelet stopped posting node status."),
        "node-not-ready",
        "Kubelet stopped posting",
    ),
    "the clock of a node is ahead": (
        replace(unled(ALL), nodes=(node(clock=3600.0),), endpoints=HEALTHY.endpoints),
        "clock-skew",
        "its clock is 3600 s ahead of that of the API server",
    ),
    "a taint keeps the agent off its node": (
        unannounced(process(AGENT), taints=(TAINT,)),
        "agent-missing",
        "no pod of the agent: the taint gpu=dedicated:NoSchedule is not tolerated",
    ),
    "the DaemonSet was given another nodeSelector": (
        unannounced(process(AGENT, selector=(("gpu", "a100"),))),
        "agent-missing",
        "it lacks the label gpu=a100",
    ),
    "the label of the agent has another value": (
        replace(process(AGENT), nodes=(node(labels={names.AGENT_LABEL: "yes"}, cards=None, condition={}, offers={}),)),
        "agent-label",
        f"{names.AGENT_LABEL}=yes",
    ),
    "no node has the label of the agent": (
        replace(process(AGENT), nodes=HEALTHY.nodes[1:]),
        "agent-nowhere",
        f"no node has the label {names.AGENT_LABEL}=true",
    ),
}

PECULIAR: Final[dict[str, Snapshot]] = {
    "a ready node sends no heartbeats, as a simulated one": replace(HEALTHY, nodes=(node(clock=-900.0),)),
    "an old runtime is served without CDI": replace(
        HEALTHY, nodes=(node(system=NodeSystem("v1.36.0", "containerd://1.6.8", "amd64")),)
    ),
    "a simulated node has no versions": replace(HEALTHY, nodes=(node(system=NodeSystem("kwok-v0.7.0", "", "")),)),
    "a node without an agent has another processor": replace(
        HEALTHY,
        nodes=(
            *HEALTHY.nodes,
            node("arm", labels={}, cards=None, condition={}, offers={}, system=NodeSystem("", "", "arm64")),
        ),
    ),
    "a node without an agent is not ready": replace(
        HEALTHY, nodes=(HEALTHY.nodes[0], HEALTHY.nodes[1]._replace(unready="Ready is Unknown", clock=-900.0))
    ),
    "a taint of the agent's node is tolerated": replace(
        process(
            AGENT,
            *(each for each in HEALTHY.own_pods if each.account == AGENT),
            tolerations=(TaintToleration("gpu", "Exists"),),
        ),
        nodes=(node(taints=(TAINT,)),),
    ),
    "all processes run as pods": ALL,
    "the namespace may not be read": replace(HEALTHY, namespace=None),
}
