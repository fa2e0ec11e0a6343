"""Converts objects of the API server to what the checks use."""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from extender.state import State
from halfcard import names
from halfcard.capacity import ImplausibleError
from halfcard.inventory import read_inventory
from halfcard.pod.owned_annotations import forged
from halfcard.pod.stored_pod import StoredPod
from halfcard.quantity import InvalidQuantity, Quantity

from .snapshot import NodeSnapshot, NotOfferedEvent, Object, OwnPod, PodSnapshot, WorkloadSnapshot

_SERVICE_LABEL: Final = "kubernetes.io/service-name"


def node_snapshot(node: Object) -> NodeSnapshot:
    metadata, status = node["metadata"], node.get("status") or {}
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    amounts = (status.get("allocatable") or {}).items()
    return NodeSnapshot(
        metadata["name"],
        metadata.get("labels") or {},
        _cards_in_order((metadata.get("annotations") or {}).get(names.INVENTORY)),
        conditions.get(names.CARDS_CONDITION) or {},
        {resource: _whole(amount) for resource, amount in amounts if "/" in resource},
    )


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


def pod_snapshots(state: State, pods: Mapping[str, StoredPod]) -> Iterator[PodSnapshot]:
    """Yields the pods that checks use; `pods` are all, by uid."""
    for uid, pod in pods.items():
        facts = state.pod(uid)
        strange = tuple(forged(pod.annotations)) if not pod.node and not pod.is_over else ()
        asks = facts is not None and facts.asks_for_cards
        if strange or asks:
            yield PodSnapshot(
                f"{pod.meta.namespace}/{pod.meta.name}",
                pod.node,
                pod.meta.creation_timestamp or "",
                (pod.spec and pod.spec.scheduler_name) or names.DEFAULT_SCHEDULER,
                pod.is_mirror,
                facts is not None and facts.bound().named is not None,  # it has a record, valid or not
                asks,
                strange,
            )


def daemons(pods: Iterable[StoredPod]) -> dict[tuple[str, str], frozenset[str]]:
    """Maps each DaemonSet to the nodes with a pod of it, whatever its selector, taints and affinities are."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in pods:
        for owner in pod.meta.owner_references or ():
            if owner.kind == "DaemonSet" and not pod.is_over:
                found[pod.meta.namespace or "", owner.name].add(pod.node)
    return {name: frozenset(nodes) for name, nodes in found.items()}


def own_pod(pod: Object) -> OwnPod:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    ready: Object = next((each for each in status.get("conditions") or () if each.get("type") == "Ready"), {})
    created = metadata["creationTimestamp"]
    return OwnPod(
        metadata["name"],
        spec.get("serviceAccountName") or "",
        spec.get("nodeName") or "",
        is_ready=ready.get("status") == "True",
        since=moment(ready.get("lastTransitionTime") or created),
        started=moment(status.get("startTime") or created),
    )


def has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def workload(kind: str, item: Object) -> WorkloadSnapshot:
    metadata, spec = item["metadata"], item["spec"]["template"]["spec"]
    volumes = [(each.get("configMap") or {}).get("name") for each in spec.get("volumes") or ()]
    return WorkloadSnapshot(
        kind,
        metadata["namespace"],
        metadata["name"],
        spec.get("serviceAccountName") or "",
        tuple(str(each.get("image") or "") for each in spec.get("containers") or ()),
        tuple(name for name in volumes if name),
        is_off=item["spec"].get("replicas") == 0,
    )


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


def data_changed(config_map: Object) -> datetime | None:
    """Returns the time of the last change of its data, from the managed fields."""
    managed = config_map["metadata"].get("managedFields") or ()
    times = [each["time"] for each in managed if "f:data" in (each.get("fieldsV1") or {}) and each.get("time")]
    return max(map(moment, times), default=None)


def moment(written: str) -> datetime:
    return datetime.fromisoformat(written)


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
