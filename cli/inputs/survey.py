"""Reads everything that the checks of `halfcard doctor` use, in one pass over the API server."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import yaml

from admission.policy_settings import policy_of
from certs.store import StoreError
from extender.state import State
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.pod.reported_pod import ReportedPod
from halfcard.quota.budgets import LEDGER_PREFIXES
from kube.api.access import Access
from kube.api.calls import NoAnswerError
from kube.driver_watches import COLLECTIONS as OF_DRIVERS
from kube.ledger.ledger_store import LedgerError, LedgerStore
from kube.node_source import NODES
from settings.installation import Settings, SettingsError, read_settings
from settings.settings_file import load_settings

from ..diagnosis import observations
from ..diagnosis.certificates.served_certificates import SECRETS
from ..diagnosis.quotas.gpu_quota_checks import CRDS
from ..diagnosis.snapshot import ABSENT, Object, PodSnapshot, RefusedWorkload, Scheduler, Snapshot
from ..judge import Judge
from .certificate_chains import read_chains
from .cluster_state import NoClusterError
from .own_survey import read_own
from .reader import Reader
from .stored_workloads import COLLECTIONS, judged_again

_TIMEOUT_S: Final = 10.0
_AT_ONCE: Final = 8
_CORE: Final = "/api/v1"
_OURS: Final = f"{_CORE}/namespaces/{names.NAMESPACE}"
_SYSTEM: Final = f"{_CORE}/namespaces/{names.KUBE_SYSTEM}"
_HEARTBEATS: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WEBHOOKS: Final = {
    f"{sort}WebhookConfiguration": f"/apis/admissionregistration.k8s.io/v1/{sort.lower()}webhookconfigurations"
    for sort in ("Mutating", "Validating")
}
_BUDGETS: Final = {names.GPU_QUOTA: names.GPU_QUOTAS, names.CLUSTER_GPU_QUOTA: names.CLUSTER_GPU_QUOTAS}

_HARMLESS: Final[Mapping[str, Any]] = {
    "name": "main",
    "image": "halfcard-doctor",
    "resources": {side: {"cpu": "1m", "memory": "1Mi"} for side in ("limits", "requests")},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}
"""A container that no policy refuses."""


def take(access: Access, namespace: str, settings: Path | None, say: Callable[[str], None]) -> Snapshot:
    """Reads a snapshot; `namespace` is where the dry-run pods are created; `say` receives the progress.

    Raises:
        NoClusterError, ApiError: nodes and pods cannot be read.
        SettingsError: the file holds no valid settings.
    """
    return asyncio.run(_take(access, namespace, settings, say))


async def _take(access: Access, namespace: str, settings: Path | None, say: Callable[[str], None]) -> Snapshot:
    now, version = await asyncio.to_thread(_server, access)
    reader = Reader(access, say)
    try:
        agreed = await _agreed(reader, settings)
        found: Settings = agreed["settings"]
        webhooks = await _of_webhooks(reader, namespace)
        parts = [
            await _of_nodes_and_pods(reader, found, now),
            webhooks,
            await read_own(reader, found, webhooks["webhooks"]),
            await _of_schedulers(reader, found),
            await _of_quotas(reader),
            await _of_workloads(reader, found),
        ]
    finally:
        reader.calls.close()
    merged = {key: value for part in (agreed, *parts) for key, value in part.items()}
    return Snapshot(now=now, api_server=version, unread=tuple(reader.unread), **merged)


def _server(access: Access) -> tuple[datetime, str]:
    """Returns the cluster's time, by which its Leases and certificates are judged, and the API server's version.

    A laptop's clock may be wrong.
    """
    connection = access.connect(_TIMEOUT_S)
    try:
        access.get(connection, names.VERSION_PATH, access.headers())
        answer = connection.getresponse()
        body, date = answer.read(), answer.headers["Date"]
        return parsedate_to_datetime(date) if date else datetime.now(UTC), observations.version_in(body)
    except (OSError, http.client.HTTPException) as error:
        where = f"{access.host}:{access.port}"
        raise NoClusterError(
            f"{where}: the API server cannot be reached: {error}; check the server of the context"
        ) from None
    finally:
        connection.close()


# --- settings --------------------------------------------------------------------------------------------------------


async def _agreed(reader: Reader, file: Path | None) -> dict[str, Any]:
    """Reads the settings of the named file, else those in the cluster, else the defaults."""
    there = await reader.object(f"{_OURS}/configmaps/{names.SETTINGS_MAP}")
    text = (there.get("data") or {}).get(names.SETTINGS_ENTRY, "") if there else ""
    in_cluster, found_hash, problem = Settings(), "" if there == ABSENT else None, ""
    if there and names.SETTINGS_ENTRY not in (there.get("data") or {}):
        problem = f"it has no entry {names.SETTINGS_ENTRY}"
    try:
        raw = yaml.safe_load(text) or {}
        in_cluster, found_hash = read_settings(raw), observations.settings_hash(raw) if there else found_hash
    except (SettingsError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
    return {
        "settings": load_settings(file) if file else in_cluster,
        "settings_problem": problem,
        "settings_changed": observations.data_changed(there) if there else None,
        "settings_hash": found_hash,
    }


# --- nodes and pods --------------------------------------------------------------------------------------------------


async def _of_nodes_and_pods(reader: Reader, settings: Settings, now: datetime) -> dict[str, Any]:
    """Reads nodes and pods into the extender's state, so that its inconsistencies are reported here."""
    state, left_out = State(settings.enabled_dialects(), settings.capacity_rules()), list[str]()
    clocks = observations.clocks(await reader.collection(_HEARTBEATS, dict[str, Any]) or (), now)
    nodes = await reader.must(NODES, dict[str, Any], left_out)
    for node in nodes:
        state.put_node(node)
    for path, kind in OF_DRIVERS.items():
        state.driver_nodes.replace(kind, await reader.collection(path, kind) or ())
    pods = {each.meta.uid: each for each in await reader.must(f"{_CORE}/pods", ReportedPod, left_out)}
    for pod in pods.values():
        state.put_pod(pod)
    seen: tuple[PodSnapshot, ...] = tuple(observations.pod_snapshots(state, pods, now))
    return {
        "nodes": tuple(observations.node_snapshot(node, clocks.get(node["metadata"]["name"])) for node in nodes),
        "pods": seen,
        "counted_pods": len(pods),
        "daemons": observations.daemons(pods.values()),
        "doubts": (*left_out, *state.inconsistencies()),
        "device_classes": state.driver_nodes.classes(),
    }


async def _of_workloads(reader: Reader, settings: Settings) -> dict[str, Any]:
    judge, refused = Judge(policy_of(settings), NOTHING_KNOWN), list[RefusedWorkload]()
    for key, path in COLLECTIONS.items():
        for item in judged_again(judge, key, await reader.collection(path, dict[str, Any]) or ()):
            problem = next(iter(item.verdict.problems), None)
            if problem is not None:
                refused.append(RefusedWorkload(f"{item.kind} {item.title}", str(problem)))
    return {"refused": tuple(refused)}


# --- the webhook -----------------------------------------------------------------------------------------------------


async def _of_webhooks(reader: Reader, namespace: str) -> dict[str, Any]:
    lists = [(kind, await reader.collection(path, dict[str, Any])) for kind, path in _WEBHOOKS.items()]
    readable = all(found is not None for _, found in lists)
    services = (names.ADMISSION_SERVICE, names.EXTENDER_SERVICE)
    slices = await reader.collection(
        f"/apis/discovery.k8s.io/v1/namespaces/{names.NAMESPACE}/endpointslices", dict[str, Any]
    )
    return {
        "webhooks": tuple({**each, "kind": kind} for kind, found in lists for each in found or ())
        if readable
        else None,
        "services": {name: await reader.object(f"{_OURS}/services/{name}") for name in services},
        "endpoints": None if slices is None else observations.ready_endpoints(slices),
        **await _certificates(reader),
        **await _probes(reader, namespace),
    }


async def _certificates(reader: Reader) -> dict[str, Any]:
    """Reads the certificates' chains, and all Secrets of these chains that may be read."""
    wanted = (*SECRETS, names.ADMISSION_CALLERS)
    secrets = {name: await reader.object(f"{_OURS}/secrets/{name}") for name in wanted}
    try:
        found = tuple(await read_chains(reader.calls)) if None not in secrets.values() else ()
    except (StoreError, NoAnswerError) as error:
        reader.note("the chains of certificates", str(error))
        found = ()
    return {"chains": found, "secrets": {name: _data(each) for name, each in secrets.items()}}


def _data(secret: Object | None) -> Mapping[str, bytes] | None:
    return None if secret is None else observations.secret_data(secret)


async def _probes(reader: Reader, namespace: str) -> dict[str, Any]:
    """Creates two pods as dry runs: one breaks two rules of every dialect, the other one asks for GPUs and breaks
    none.
    """
    path = f"{_CORE}/namespaces/{quote(namespace, safe='')}/pods"
    bad = _pod({names.PLACEMENT: "{}"}, "all")
    good = _pod({}, names.SEES_NOTHING)
    return {"bad": await reader.create_for_show(path, bad), "good": await reader.create_for_show(path, good)}


def _pod(annotations: Mapping[str, str], sees: str) -> Object:
    container = {**_HARMLESS, "env": [{"name": names.VISIBLE_DEVICES, "value": sees}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "halfcard-doctor-", "annotations": annotations},
        "spec": {"containers": [container], "automountServiceAccountToken": False},
    }


# --- schedulers ------------------------------------------------------------------------------------------------------


async def _of_schedulers(reader: Reader, settings: Settings) -> dict[str, Any]:
    """Reads schedulers that run as pods with a configuration from a ConfigMap; files on a node's disk are invisible."""
    pods = [
        *await reader.selected(f"{_CORE}/pods", labelSelector="component in (kube-scheduler, scheduler)"),
        *await reader.selected(f"{_OURS}/pods", labelSelector=f"{names.NAME_LABEL}={names.SCHEDULER}"),
    ]
    selector = "reason=FailedScheduling"
    failed = await reader.selected(f"{_CORE}/events", fieldSelector=selector) if settings.derived_resources else ()
    return {
        "schedulers": tuple([await _scheduler(reader, pod) for pod in pods]),
        "short_of_derived": observations.short_of_derived(failed),
    }


async def _scheduler(reader: Reader, pod: Object) -> Scheduler:
    file = observations.configuration_file(pod)
    namespace = pod["metadata"]["namespace"]
    source = observations.config_map_of(pod, file)
    there = await reader.object(f"{_CORE}/namespaces/{namespace}/configmaps/{source[0]}") if source else None
    return Scheduler(
        f"{namespace}/{pod['metadata']['name']}",
        file,
        _configuration(there, source[1]) if there and source else None,
        observations.scheduler_image(pod),
    )


def _configuration(config_map: Object, entry: str) -> Object | None:
    try:
        found = yaml.safe_load((config_map.get("data") or {}).get(entry, ""))
    except yaml.YAMLError:
        return None
    return found if isinstance(found, dict) else None


# --- quotas ----------------------------------------------------------------------------------------------------------


async def _of_quotas(reader: Reader) -> dict[str, Any]:
    budgets = [
        {**each, "kind": kind}
        for kind, plural in _BUDGETS.items()
        for each in await reader.collection(f"{names.QUOTA_API}/{plural}", dict[str, Any]) or ()
    ]
    quotas = await reader.collection(f"{_CORE}/resourcequotas", dict[str, Any]) or ()
    return {
        "quotas": tuple(quotas),
        "crds": {name: await reader.object(f"{_DEFINITIONS}/{name}") for name in CRDS},
        "budgets": tuple(budgets),
        "ledgers": await _ledgers(reader),
    }


async def _ledgers(reader: Reader) -> dict[str, str]:
    """Checks each existing ledger; a missing one is the quota service's task."""
    maps = await reader.collection(f"{_OURS}/configmaps", dict[str, Any]) or ()
    wanted = [name for each in maps if (name := each["metadata"]["name"]).startswith(LEDGER_PREFIXES)]
    kept, turns = LedgerStore(reader.calls, names.NAMESPACE), asyncio.Semaphore(_AT_ONCE)

    async def trouble(name: str) -> str:
        async with turns:
            try:
                await kept.read(name)
            except (LedgerError, NoAnswerError) as error:
                return str(error)
            return ""

    return dict(zip(wanted, await asyncio.gather(*map(trouble, wanted)), strict=True))
