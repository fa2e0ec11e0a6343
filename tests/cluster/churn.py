"""Creates and deletes pods of every system on fake nodes, by a seed, and checks afterwards what each card has.

The check adds up nodes, specs and records only, without the code that placed the pods.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from devcluster.cluster import Cluster
from devcluster.control_plane.loader import LoadRequest
from devcluster.fake_nodes.gpu_nodes import SLICES, GpuNodes
from devcluster.objects import Object
from extender.explain.inspection import inspect_json
from extender.state import State
from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.dialects import ALL, Dialects
from halfcard.placing.layouts import fits
from halfcard.placing.node_totals import offers
from halfcard.pod.stored_pod import StoredPod

_UNIT_MIB: Final = 256
_TUYA_MEMORY: Final = "tuya.com/vcuda-memory"


class Part(NamedTuple):
    """A part of one card: whole, half or slice, or a share with its amounts."""

    kind_of_part: str
    cores: int = 0
    mib: int = 0


class Kind(NamedTuple):
    """The requests of a pod, the number of its cards, and what it takes of each."""

    system: str
    asks: Mapping[str, int]
    cards: int
    part: Part


WHOLE: Final = Part("whole")
HALF: Final = Part("half")
SLICE: Final = Part("slice")
_MOST: Final = {"whole": 1, "half": 2, "slice": SLICES}


def _share(cores: int, mib: int) -> Part:
    return Part("share", cores, mib)


def _vcuda(cores: int, units: int) -> Kind:
    asks = {names.VCUDA_CORE: cores, names.VCUDA_MEMORY: units}
    return Kind("gpu-manager", asks, 1, _share(cores, units * _UNIT_MIB))


KINDS: Final = (
    _vcuda(30, 20),
    _vcuda(10, 4),
    _vcuda(50, 28),
    _vcuda(70, 12),
    Kind("gpu-manager", {names.VCUDA_CORE: 100}, 1, WHOLE),
    Kind("gpu-manager", {names.VCUDA_CORE: 200}, 2, WHOLE),
    Kind("tuya", {names.TUYA_SGPU: 2}, 2, HALF),
    Kind("tuya", {_TUYA_MEMORY: 30}, 1, _share(0, 30 * _UNIT_MIB)),
    Kind("tuya", {names.NVIDIA_GPU: 1}, 1, WHOLE),
    Kind("gpushare", {names.ALIYUN_GPU_MEM: 4}, 1, _share(0, 4096)),
    Kind("gpushare", {names.ALIYUN_GPU_MEM: 9}, 1, _share(0, 9216)),
    Kind("volcano", {names.VOLCANO_GPU_MEMORY: 5000}, 1, _share(0, 5000)),
    Kind("volcano", {names.VOLCANO_GPU_NUMBER: 2}, 2, WHOLE),
    Kind("nvidia", {names.NVIDIA_GPU: 1}, 1, WHOLE),
    Kind("nvidia", {names.NVIDIA_GPU: 3}, 3, WHOLE),
    Kind("time-slices", {names.NVIDIA_GPU_SHARED: 1}, 1, SLICE),
    Kind("hami", {names.NVIDIA_GPU: 2, names.HAMI_GPUMEM: 6000, names.HAMI_GPUCORES: 40}, 2, _share(40, 6000)),
)
_KIND: Final = "kind"
"""The label with the index of a pod's kind in KINDS."""

_MACHINES: Final = (
    ("gpu-manager", 16),
    ("tuya", 8),
    ("gpushare", 5),
    ("volcano", 6),
    ("nvidia", 7),
    ("time-slices", 3),
    ("hami", 5),
)
_PODS_OF_ALL: Final = 600
"""The number of pods for the machines above; it is more than fit, so that some have to wait."""

CARDS: Final = 4
CARD_MIB: Final = 22016


def machines(model: str, pods: int) -> list[GpuNodes]:
    """Returns 50 nodes for every 600 pods; the name of the model contains the system, and pods select it."""
    times = max(1, round(pods / _PODS_OF_ALL))
    return [GpuNodes(times * count, f"{model}-{system}", CARD_MIB, system, CARDS) for system, count in _MACHINES]


@dataclass(slots=True)
class Churner:
    """Requests that create and delete the pods of one namespace; the same seed gives the same requests."""

    namespace: str
    model: str
    seed: int
    _made: int = 0
    _alive: list[str] = field(default_factory=list)

    @property
    def alive(self) -> set[str]:
        """The names of the pods that were created and not deleted."""
        return {*self._alive}

    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def create(self, count: int) -> Iterator[LoadRequest]:
        for _ in range(count):
            yield self._creation()

    def create_and_delete(self, count: int) -> Iterator[LoadRequest]:
        """Creates `count` pods and meanwhile deletes nearly as many of the existing ones."""
        for _ in range(count):
            yield self._creation()
            if len(self._alive) > _NEWEST:
                yield self._deletion()

    def _creation(self) -> LoadRequest:
        number = self._random.randrange(len(KINDS))
        name = f"p{self._made:05}"
        self._made += 1
        self._alive.append(name)
        return LoadRequest("POST", self.path, self._pod(name, number))

    def _deletion(self) -> LoadRequest:
        """Deletes a pod that surely exists: the create of a very new one may not be finished."""
        at = self._random.randrange(len(self._alive) - _NEWEST)
        return LoadRequest("DELETE", f"{self.path}/{self._alive.pop(at)}")

    def _pod(self, name: str, number: int) -> Object:
        kind = KINDS[number]
        amounts = {resource: str(amount) for resource, amount in kind.asks.items()}
        container = {"name": "main", "image": "none", "resources": {"limits": amounts, "requests": amounts}}
        selector = {names.NVIDIA_LABEL_PRODUCT: f"{self.model}-{kind.system}"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {_KIND: str(number)}},
            "spec": {"containers": [container], "nodeSelector": selector, "automountServiceAccountToken": False},
        }


_NEWEST: Final = 40


# --- the check --------------------------------------------------------------------------------------------------------


def overcommitted(pods: Iterable[Object]) -> list[str]:
    """Returns a sentence for each overcommitted card and each impossible record."""
    wrong: list[str] = []
    parts_by_card: defaultdict[tuple[str, str], list[Part]] = defaultdict(list)
    for pod in pods:
        node, kind = pod["spec"].get("nodeName"), KINDS[int(pod["metadata"]["labels"][_KIND])]
        if not node:
            continue
        cards, why = _recorded(pod["metadata"].get("annotations") or {}, node, kind)
        wrong += [f"{pod['metadata']['name']} on {node}: {why}"] if why else []
        for card in cards:
            parts_by_card[node, card].append(kind.part)
    return wrong + [
        f"card {card} of {node} holds {parts}" for (node, card), parts in parts_by_card.items() if not _fits(parts)
    ]


def _recorded(annotations: Mapping[str, str], node: str, kind: Kind) -> tuple[list[str], str]:
    if names.PLACEMENT not in annotations:
        return [], "no record"
    record = json.loads(annotations[names.PLACEMENT])
    cards: list[str] = record["cards"]["main"]
    if record["node"] != node or len(set(cards)) != kind.cards or not set(cards) <= {str(at) for at in range(CARDS)}:
        return cards, f"the record is {record}"
    peer_values = [value for key, value in annotations.items() if key in _PEER_RECORDS]
    return cards, "" if all(each == ",".join(cards) for each in peer_values) else f"two records: {annotations}"


_PEER_RECORDS: Final = frozenset(
    {
        "tencent.com/predicate-gpu-idx-0",
        "tuya.com/predicate-gpu-idx-0",
        "ALIYUN_COM_GPU_MEM_IDX",
        "volcano.sh/gpu-index",
    }
)


def _fits(parts: Sequence[Part]) -> bool:
    kinds_of_parts = {part.kind_of_part for part in parts}
    if len(kinds_of_parts) > 1:
        return False
    if (kind_of_part := kinds_of_parts.pop()) in _MOST:
        return len(parts) <= _MOST[kind_of_part]
    return sum(part.cores for part in parts) <= 100 and sum(part.mib for part in parts) <= CARD_MIB


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All nodes and pods of the cluster at one moment, and the state that a new extender builds of them."""

    state: State
    pods: Sequence[Object]

    def of(self, namespace: str) -> list[Object]:
        return [pod for pod in self.pods if pod["metadata"]["namespace"] == namespace]

    def inspected(self) -> dict[str, Any]:
        table = offers(ALL)
        found = {name: inspect_json(self.state, node, table) for name, node in self.state.nodes().items()}
        copy: dict[str, Any] = json.loads(json.dumps(found))
        return copy

    def wrongly_pending(self, namespace: str) -> list[str]:
        """Returns the pods that are pending although a card is free for them."""
        return [pod["metadata"]["name"] for pod in self.of(namespace) if self._fits_now(pod)]

    def _fits_now(self, pod: Object) -> bool:
        facts = self.state.pod(pod["metadata"]["uid"])
        if facts is None or facts.node:
            return False
        model = pod["spec"]["nodeSelector"][names.NVIDIA_LABEL_PRODUCT].lower()
        rooms = (self.state.room(name) for name in self.state.nodes() if f"-{model}-" in f"-{name}")
        return any(room is not None and fits(room, facts.demand) for room in rooms)


def take_snapshot(cluster: Cluster) -> Snapshot:
    nodes = cluster.request("GET", "/api/v1/nodes").must()["items"]
    pods = cluster.request("GET", "/api/v1/pods").must()["items"]
    state = State(Dialects(), CapacityRules())
    state.replace_nodes(nodes)
    state.replace_pods(msgspec.json.decode(json.dumps(pods), type=list[StoredPod]))
    return Snapshot(state, pods)
