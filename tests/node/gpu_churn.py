"""Creates and deletes pods of several systems on one real node, chosen by a seed, and checks their cards.

The usage of each card is added up here from specs, records and containers' reports, without the code that placed them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from devcluster.objects import Object, is_ready
from devcluster.waiting import wait_until
from halfcard import names
from halfcard.pod.spec import CONTAINERS, INIT_CONTAINERS
from tests.builders import PodBuilder, pod
from tests.cluster.site import annotations_of, cards_of, node_of

from .container_report import reporting, wrong_cards
from .gpu_cluster import GpuCluster

CARD_MIB: Final = 15109
"""The memory of the stand-in's T4."""

_CORES: Final = 100
_UNIT_MIB: Final = 256


class Part(NamedTuple):
    """What is used of one card; parts of different modes cannot share a card."""

    mode: str
    cores: int
    mib: int


class Kind(NamedTuple):
    """A kind of pod, and what each of its containers uses of each of its cards; `weight` is how often it is chosen."""

    build: Callable[[PodBuilder], PodBuilder]
    uses: Mapping[str, Part]
    weight: int = 1


def _share(cores: int, units: int) -> Part:
    return Part("share", cores, units * _UNIT_MIB)


_APP: Final = f"{CONTAINERS}-0"
_INIT: Final = f"{INIT_CONTAINERS}-0".lower()
_TENTH: Final = _share(10, 4)
_WHOLE: Final = Part("whole", _CORES, CARD_MIB)
_HALF: Final = Part("half", _CORES // 2, CARD_MIB // 2)

KINDS: Final = (
    Kind(lambda p: p.asks(core=10, memory=4), {_APP: _TENTH}, weight=6),
    Kind(lambda p: p.init(core=10, memory=4).asks(core=10, memory=4), {_INIT: _TENTH, _APP: _TENTH}, weight=6),
    Kind(lambda p: p.init(core=20, memory=8).asks(core=10, memory=4), {_INIT: _share(20, 8), _APP: _TENTH}),
    Kind(lambda p: p.init(core=10, memory=4).asks(core=20, memory=8), {_INIT: _TENTH, _APP: _share(20, 8)}),
    Kind(lambda p: p.init(core=10, memory=4).asks(), {_INIT: _TENTH}),
    Kind(lambda p: p.sidecar(core=10, memory=4).asks(core=10, memory=4), {_INIT: _TENTH, _APP: _TENTH}, weight=3),
    Kind(
        lambda p: p.asks(core=10, memory=4).asks(core=10, memory=4),
        {_APP: _TENTH, f"{CONTAINERS}-1": _TENTH},
        weight=3,
    ),
    Kind(
        lambda p: p.init(core=10, memory=4).sidecar(core=5, memory=2).asks(core=10, memory=4),
        {_INIT: _TENTH, f"{INIT_CONTAINERS}-1".lower(): _share(5, 2), _APP: _TENTH},
    ),
    Kind(lambda p: p.asks(core=100), {_APP: _WHOLE}),
    Kind(lambda p: p.init(core=200).asks(core=200), {_INIT: _WHOLE, _APP: _WHOLE}),
    Kind(lambda p: p.asks(sgpu=1), {_APP: _HALF}),
    Kind(lambda p: p.init(gpu=1).asks(gpu=1), {_INIT: _WHOLE, _APP: _WHOLE}),
    Kind(lambda p: p.asks(gpu_mem=2), {_APP: Part("share", 0, 2048)}),
    Kind(lambda p: p.asks(gpu_memory=2000), {_APP: Part("share", 0, 2000)}),
)
_WEIGHTS: Final = [kind.weight for kind in KINDS]
_KIND: Final = "kind"
"""The label with the number of the pod's kind."""

OFFERED: Final = (
    names.VCUDA_CORE,
    names.VCUDA_MEMORY,
    names.TUYA_SGPU,
    names.NVIDIA_GPU,
    names.ALIYUN_GPU_MEM,
    names.VOLCANO_GPU_MEMORY,
)
_TIMEOUT_S: Final = 90.0
_PER_POD_S: Final = 2.0
"""How long containerd needs for a pod on a busy machine."""


@dataclass(slots=True)
class PodChurn:
    """The pods of one namespace; the same seed creates and deletes the same pods."""

    gpus: GpuCluster
    namespace: str
    seed: int
    random: random.Random = field(init=False)
    _created: int = 0
    _names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def create(self, count: int) -> None:
        for _ in range(count):
            (number,) = self.random.choices(range(len(KINDS)), _WEIGHTS)
            name = f"p{self._created:04}"
            self._created += 1
            built = reporting(KINDS[number].build(pod(name))).labelled({_KIND: str(number)})
            self.gpus.cluster.request("POST", self._path, built.manifest).must()
            self._names.append(name)

    def delete(self, count: int) -> None:
        for name in self.random.sample(self._names, count):
            self._delete_pod(name)

    def replace_failed(self) -> None:
        """As their controllers would: a pod that kubelet failed while no agent served it never runs again."""
        failed = [name_of(each) for each in self.pods() if has_failed(each) and not is_terminating(each)]
        for name in failed:
            self._delete_pod(name)
        self.create(len(failed))

    def delete_all(self) -> None:
        for name in [*self._names]:
            self._delete_pod(name)
        self.gpus.cluster.wait_until(
            lambda: not self.pods(), what=f"all pods of {self.namespace} to be deleted", seconds=self._timeout_s()
        )

    def _delete_pod(self, name: str) -> None:
        self._names.remove(name)
        self.gpus.cluster.request("DELETE", f"{self._path}/{name}").must()

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def pods(self) -> list[Object]:
        found: list[Object] = self.gpus.cluster.request("GET", self._path).must()["items"]
        return found

    def on_node(self) -> list[Object]:
        """The pods that have a node; pending pods are left out."""
        return [each for each in self.pods() if node_of(each)]

    def running(self) -> list[Object]:
        return [each for each in self.on_node() if is_running(each)]

    def wait_settled(self) -> list[Object]:
        """Waits until each pod with a node runs, terminates, or was failed by kubelet; returns them."""
        seen: list[Object] = []

        def starting() -> list[str]:
            return [
                name_of(each) for each in seen if not (is_running(each) or is_terminating(each) or has_failed(each))
            ]

        def settled() -> bool:
            seen[:] = self.on_node()
            return not starting()

        wait_until(
            settled,
            what=f"the pods of {self.namespace} to run",
            seconds=self._timeout_s(),
            details=lambda: self._details_of(starting()),
        )
        return seen

    def _timeout_s(self) -> float:
        return _TIMEOUT_S + _PER_POD_S * self._created

    def _details_of(self, waiting: Sequence[str]) -> str:
        descriptions = [
            self.gpus.cluster.kubectl("-n", self.namespace, "describe", "pod", each) for each in waiting[:2]
        ]
        return "\n".join([*waiting, *[each.stdout for each in descriptions], self.gpus.agent.program.log_tail(40)])

    def violations(self, seen: Sequence[Object], before: Sequence[Object] = ()) -> list[str]:
        """Returns a sentence for each violation; the pods `before` must still run, unless they were deleted since."""
        wrong = [each for pod in seen if is_running(pod) for each in wrong_cards(self.gpus.cluster, pod)]
        return [*wrong, *overcommitted(each for each in seen if not has_failed(each)), *self._lost(seen, before)]

    def _lost(self, seen: Sequence[Object], before: Sequence[Object]) -> Iterator[str]:
        now = {each["metadata"]["uid"]: each for each in seen}
        for earlier in before:
            later = now.get(earlier["metadata"]["uid"])
            if later is None and name_of(earlier) in self._names:
                yield f"{name_of(earlier)} is gone"
            elif later is not None and (runs := container_ids(later)) != (ran := container_ids(earlier)):
                yield f"{name_of(earlier)} ran {ran}, now {runs}: {later['status'].get('message', '')}"


def name_of(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def has_failed(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Failed")


def is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_running(pod: Object) -> bool:
    return is_ready(pod) and not is_terminating(pod)


def container_ids(pod: Object) -> dict[str, str]:
    """The runtime's ids of the containers, by container name; a restarted container has another id."""
    statuses = pod["status"].get("containerStatuses", ())
    return {each["name"]: each.get("containerID", "") for each in statuses}


# --- the usage of cards ----------------------------------------------------------------------------------------------


def overcommitted(pods: Iterable[Object]) -> list[str]:
    """Finds cards that are recorded beyond their size or in two modes, and pods without a record."""
    found: list[str] = []
    usage: defaultdict[str, list[Part]] = defaultdict(list)
    for each in pods:
        if names.PLACEMENT not in annotations_of(each):
            found.append(f"{name_of(each)} has no record")
            continue
        for card, part in _peaks(each).items():
            usage[card].append(part)
    return found + [f"card {card} is used by {parts}" for card, parts in usage.items() if not _fits(parts)]


def _peaks(pod: Object) -> dict[str, Part]:
    """The most that the pod uses of each card: an init container that ends runs beside earlier sidecars only."""
    uses, recorded = KINDS[int(pod["metadata"]["labels"][_KIND])].uses, cards_of(pod)
    assert recorded.keys() == uses.keys(), f"{name_of(pod)}: {recorded}"
    lasting: dict[str, Part] = {}
    peaks: dict[str, Part] = {}
    for container, stays in _in_order(pod):
        for card in recorded.get(container, ()):
            now = _sum(lasting.get(card), uses[container])
            peaks[card] = _maximum(peaks.get(card), now)
            if stays:
                lasting[card] = now
    return peaks


def _in_order(pod: Object) -> Iterator[tuple[str, bool]]:
    """The containers in the order in which they start, and whether each keeps running."""
    for container in pod["spec"].get(INIT_CONTAINERS, ()):
        yield container["name"], container.get("restartPolicy") == "Always"
    for container in pod["spec"][CONTAINERS]:
        yield container["name"], True


def _sum(one: Part | None, other: Part) -> Part:
    return other if one is None else Part(other.mode, one.cores + other.cores, one.mib + other.mib)


def _maximum(one: Part | None, other: Part) -> Part:
    return other if one is None else Part(other.mode, max(one.cores, other.cores), max(one.mib, other.mib))


def _fits(parts: Sequence[Part]) -> bool:
    together = sum(part.cores for part in parts) <= _CORES and sum(part.mib for part in parts) <= CARD_MIB
    return together and len({part.mode for part in parts}) == 1
