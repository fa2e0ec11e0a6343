"""Converts objects of the API server to what the checks use."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from extender.state import State
from halfcard import names
from halfcard.capacity import ImplausibleError
from halfcard.inventory import read_inventory
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import BY_AGENT, recorder
from halfcard.pod.owned_annotations import forged
from halfcard.pod.reported_pod import ReportedPod
from halfcard.pod.stored_pod import StoredPod
from halfcard.quantity import InvalidQuantity, Quantity

from .own_objects import Taint
from .process_observations import moment
from .snapshot import NodeSnapshot, NodeSystem, NotOfferedEvent, Object, PodSnapshot

_HASH_CHARS: Final = 16
_SERVICE_LABEL: Final = "kubernetes.io/service-name"


def node_snapshot(node: Object, clock: float | None = None) -> NodeSnapshot:
    metadata, status = node["metadata"], node.get("status") or {}
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    amounts = (status.get("allocatable") or {}).items()
    return NodeSnapshot(
        metadata["name"],
        metadata.get("labels") or {},
        _cards_in_order((metadata.get("annotations") or {}).get(names.INVENTORY)),
        conditions.get(names.CARDS_CONDITION) or {},
        {resource: _whole(amount) for resource, amount in amounts if "/" in resource},
        _system(status.get("nodeInfo") or {}),
        tuple(_taint(each) for each in (node.get("spec") or {}).get("taints") or ()),
        _unready(conditions.get("Ready") or {}),
        clock,
        conditions.get(names.ISOLATION_CONDITION) or {},
    )


def _system(info: Object) -> NodeSystem:
    return NodeSystem(
        info.get("kubeletVersion") or "", info.get("containerRuntimeVersion") or "", info.get("architecture") or ""
    )


def _taint(written: Object) -> Taint:
    return Taint(written["key"], written.get("value") or "", written.get("effect") or "")


def _unready(condition: Object) -> str:
    if condition.get("status", "True") == "True":
        return ""
    return f"Ready is {condition['status']}: {condition.get('message') or condition.get('reason') or ''}"


def clocks(heartbeats: Iterable[Object], now: datetime) -> dict[str, float]:
    """Returns by node how many seconds its clock is ahead, by the time that kubelet wrote last."""
    renewed = {each["metadata"]["name"]: (each.get("spec") or {}).get("renewTime") for each in heartbeats}
    return {node: (moment(when) - now).total_seconds() for node, when in renewed.items() if when}


def version_in(body: bytes) -> str:
    """Returns the version in the API server's answer; empty where it shows none."""
    try:
        return str(json.loads(body).get("gitVersion") or "")
    except (ValueError, AttributeError):
        return ""


def _cards_in_order(inventory: str | None) -> int | None:
    """Counts the healthy cards; 0 for an unreadable inventory: the node is then skipped, and another check reports
    it.
    """
    try:
        return None if inventory is None else sum(not card.why_not for card in read_inventory(inventory).cards)
    except ImplausibleError:
        return 0


def _whole(amount: object) -> int:
    try:
        return Quantity.parse(str(amount)).as_int() or 0
    except InvalidQuantity:
        return 0


def pod_snapshots(state: State, pods: Mapping[str, ReportedPod], now: datetime) -> Iterator[PodSnapshot]:
    """Yields the pods that checks use; `pods` are all, by uid. A pod on a node of a DRA driver needs no record."""
    for uid, pod in pods.items():
        facts = state.pod(uid)
        strange = tuple(forged(pod.annotations)) if not pod.node and not pod.is_over else ()
        asks = facts is not None and facts.asks_for_cards and not state.driver(facts.node)
        if strange or asks:
            yield PodSnapshot(
                f"{pod.meta.namespace}/{pod.meta.name}",
                pod.node,
                pod.meta.creation_timestamp or "",
                pod.scheduler,
                pod.is_mirror,
                facts is not None and facts.bound().named is not None,  # it has a record, valid or not
                asks,
                strange,
                facts is not None and _by_agent(facts),
                tuple(sorted(facts.asks)) if facts is not None else (),
                _refusal(pod),
                pod.waits_untried(now),
            )


def _refusal(pod: ReportedPod) -> str:
    """Returns why the scheduler has not bound the pod, in its own words; empty if it has, or said nothing."""
    return (pod.refusal.message or "") if pod.refusal is not None and not pod.node else ""


def _by_agent(facts: PodFacts) -> bool:
    return recorder(facts.owned, facts.node, facts.containers, facts.demand.needs) == BY_AGENT


def daemons(pods: Iterable[StoredPod]) -> dict[tuple[str, str], frozenset[str]]:
    """Maps each DaemonSet to the nodes with a pod of it, whatever its selector, taints and affinities are."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in pods:
        for owner in pod.meta.owner_references or ():
            if owner.kind == "DaemonSet" and not pod.is_over:
                found[pod.meta.namespace or "", owner.name].add(pod.node)
    return {name: frozenset(nodes) for name, nodes in found.items()}


def refusal(event: Object) -> NotOfferedEvent:
    """Reads an Event; its time is in one of three fields, depending on its author."""
    when = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    is_over = event.get("reason") == "Offered"
    return NotOfferedEvent(event["involvedObject"]["name"], event.get("message") or "", moment(when), is_over)


def short_of_derived(failed: Iterable[Object]) -> tuple[str, ...]:
    """Pods of whom a scheduler says so."""
    sign = f"Insufficient {names.DERIVED_GROUP}/"
    pods = [each["involvedObject"] for each in failed if sign in (each.get("message") or "")]
    return tuple(sorted({f"{pod.get('namespace')}/{pod['name']}" for pod in pods}))


def ready_endpoints(slices: Iterable[Object]) -> dict[str, int]:
    """Counts ready endpoints by Service; an endpoint without the condition is ready."""
    found: dict[str, int] = {}
    for item in slices:
        service = (item["metadata"].get("labels") or {}).get(_SERVICE_LABEL, "")
        ready = [
            each for each in item.get("endpoints") or () if (each.get("conditions") or {}).get("ready") is not False
        ]
        found[service] = found.get(service, 0) + len(ready)
    return found


def secret_data(secret: Object) -> dict[str, bytes]:
    return {key: _decoded(text) for key, text in (secret.get("data") or {}).items()}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def settings_hash(raw: Any) -> str:
    """Returns the hash by which the chart marks the pods, of settings as read from YAML."""
    text = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    for each in "<>&":  # helm's toJson escapes what HTML reads
        text = text.replace(each, f"\\u{ord(each):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]


def data_changed(config_map: Object) -> datetime | None:
    """Returns the time of the last change of its data, from the managed fields."""
    managed = config_map["metadata"].get("managedFields") or ()
    times = [each["time"] for each in managed if "f:data" in (each.get("fieldsV1") or {}) and each.get("time")]
    return max(map(moment, times), default=None)


# --- kube-scheduler --------------------------------------------------------------------------------------------------


def configuration_file(pod: Object) -> str:
    """Returns the configuration file of a kube-scheduler; empty for none."""
    for container in pod["spec"].get("containers") or ():
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        for word, following in pairwise([*words, ""]):
            option, is_joined, value = word.partition("=")
            if option == "--config":
                return str(value if is_joined else following)
    return ""


def scheduler_image(pod: Object) -> str:
    """Returns the image of the container that runs kube-scheduler, which may not be the only one of its pod."""
    images = [str(each.get("image") or "") for each in pod["spec"].get("containers") or ()]
    return next((image for image in images if "kube-scheduler" in image), "")


def config_map_of(pod: Object, file: str) -> tuple[str, str] | None:
    """The ConfigMap, and the entry in it, that a file of a pod comes from."""
    maps = {each["name"]: each["configMap"]["name"] for each in pod["spec"].get("volumes") or () if "configMap" in each}
    mounts: list[Mapping[str, Any]] = [
        mount for container in pod["spec"].get("containers") or () for mount in container.get("volumeMounts") or ()
    ]
    for mount in mounts:
        folder = mount["mountPath"].rstrip("/")
        if mount["name"] not in maps:
            continue
        if mount.get("subPath") and folder == file:
            return maps[mount["name"]], str(mount["subPath"])
        if file.startswith(f"{folder}/"):
            return str(maps[mount["name"]]), file.removeprefix(f"{folder}/")
    return None
