"""A synthetic cluster: thousands of nodes, pods on their cards, and the calls of a scheduler about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.pod.stored_pod import StoredPod

Json = dict[str, Any]
Amounts = Mapping[str, int]

CARDS: Final = 8
_UNITS_A_CARD: Final = 59
_ASKING: Final = 10_000_000
_CROWDED: Final = CARDS - 1
"""The card of each node for the pods that are added later; no other pods are on it."""

_POD: Final = msgspec.json.Decoder(StoredPod)
_SHARES: Final = tuple(
    {names.VCUDA_CORE: cores, names.VCUDA_MEMORY: units} for cores in (10, 30, 50) for units in (5, 10, 20)
)
_OTHERS: Final[tuple[Amounts, ...]] = ({names.VCUDA_CORE: 100}, {names.TUYA_SGPU: 1}, {names.ALIYUN_GPU_MEM: 3})
_TWO_CARDS: Final[Amounts] = {names.VCUDA_CORE: 200}
_PAIRS: Final = CARDS // 2
_SMALL: Final[Amounts] = {names.VCUDA_CORE: 2, names.VCUDA_MEMORY: 1}


@dataclass(frozen=True, slots=True)
class Size:
    nodes: int = 5000
    pods: int = 20_000
    full_nodes: int = 500
    pods_later: int = 200_000


def node_name(number: int) -> str:
    return f"tencent-tesla-t4-{number:05}"


def node(number: int) -> Json:
    capacity = {
        "cpu": "64",
        "memory": "256Gi",
        "pods": "110",
        names.VCUDA_CORE: str(100 * CARDS),
        names.VCUDA_MEMORY: str(_UNITS_A_CARD * CARDS),
    }
    labels = {"kubernetes.io/hostname": node_name(number), names.NVIDIA_LABEL_PRODUCT: "Tesla-T4"}
    return {
        "metadata": {"name": node_name(number), "labels": labels},
        "spec": {},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def full_node(number: int, kilobytes: int = 10) -> Json:
    """A node object with conditions, images and everything else that kube-scheduler sends."""
    found = node(number)
    found["spec"] = {"podCIDR": "10.0.0.0/24", "providerID": f"kind://{node_name(number)}"}
    kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    found["status"]["conditions"] = [
        {"type": kind, "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "message": f"kubelet: no {kind}"}
        for kind in kinds
    ]
    images: list[Json] = []
    found["status"]["images"] = images
    while len(json.dumps(found)) < kilobytes * 1000:
        digest = f"{number:05}{len(images):04}" * 7
        images.append({"names": [f"registry.example/library/image@sha256:{digest}"], "sizeBytes": 123456789})
    return found


# --- pods -------------------------------------------------------------------------------------------------------------


def placed(size: Size) -> Iterator[StoredPod]:
    """Yields pods of every kind with their records, evenly over the nodes; every fourth node has more."""
    random = Random(42)
    for number in range(size.pods):
        on, place = number % size.nodes, number // size.nodes % _PAIRS
        asked = random.choice(_SHARES if random.random() < 0.7 else _OTHERS)
        if on % 4 == 0 and place < _PAIRS - 1:
            yield bound(number, on, _TWO_CARDS, [2 * place, 2 * place + 1])
        else:
            yield bound(number, on, asked, [2 * place])


def later(size: Size) -> Iterator[StoredPod]:
    """Yields small pods, those of a node on one card, which is not full until there are ten times as many pods."""
    for number in range(size.pods, size.pods_later):
        yield bound(number, number % size.nodes, _SMALL, [_CROWDED])


def bound(number: int, on: int, asked: Amounts, cards: list[int]) -> StoredPod:
    record = json.dumps({"node": node_name(on), "cards": {"train": [str(card) for card in cards]}})
    return _POD.decode(json.dumps(_pod(number, asked, on=node_name(on), annotations={names.PLACEMENT: record})))


def asking(asked: Amounts, containers: int = 1, number: int = 0) -> Json:
    return _pod(_ASKING + number, asked, containers=containers)


def kinds() -> dict[str, Json]:
    """Returns the pods that the scheduler places."""
    share = {names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 10}
    return {
        "a share": asking(share, number=1),
        "two whole cards": asking(_TWO_CARDS, number=2),
        "two halves": asking({names.TUYA_SGPU: 2}, number=3),
        "a share in each of two containers": asking(share, containers=2, number=4),
        "hami: 3,000 MiB of each of two cards": asking({names.NVIDIA_GPU: 2, names.HAMI_GPUMEM: 3000}, number=5),
        "five whole cards, which no node has": asking({names.VCUDA_CORE: 500}, number=6),
    }


def waiting() -> Iterator[StoredPod]:
    """The same pods as the watch shows them before the scheduler asks."""
    return (_POD.decode(json.dumps(pod)) for pod in kinds().values())


def _pod(
    number: int, asked: Amounts, *, on: str = "", annotations: Mapping[str, str] | None = None, containers: int = 1
) -> Json:
    amounts = {name: str(amount) for name, amount in asked.items()}
    resources = {"limits": amounts, "requests": {**amounts, "cpu": "1", "memory": "4Gi"}}
    asks = [{"name": name, "image": "train:1", "resources": resources} for name in ("train", "serve")[:containers]]
    metadata = {
        "name": f"train-{number}",
        "namespace": "team-a",
        "uid": f"705ab4f5-6393-11e8-b7cc-{number:012}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": dict(annotations or {}),
    }
    spec = {"containers": asks, "schedulerName": "default-scheduler", "priority": 0} | ({"nodeName": on} if on else {})
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running" if on else "Pending"}}


# --- what the scheduler asks ------------------------------------------------------------------------------------------


def by_name(pod: Json, nodes: list[str]) -> bytes:
    return _compact({"Pod": pod, "Nodes": None, "NodeNames": nodes})


def in_full(pod: Json, nodes: list[Json]) -> bytes:
    return _compact({"Pod": pod, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None})


def _compact(call: Json) -> bytes:
    return json.dumps(call, separators=(",", ":")).encode()
