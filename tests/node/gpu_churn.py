"""Pods of several systems that come and go on one real node, by a seed; and who may say afterwards that all is well.

The law: what lies where is added up here from specs, records and what containers say, without the code that placed it.
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

from .gpu_cluster import GpuCluster
from .told import differences, telling

CARD_MIB: Final = 15109
"""Of the stand-in's T4."""

_CORES: Final = 100
_UNIT_MIB: Final = 256


class Part(NamedTuple):
    """Of one card; parts of different ways do not go together."""

    way: str
    cores: int
    mib: int


class Kind(NamedTuple):
    """A pod as people ask for it, and what each of its containers takes of each of its cards."""

    build: Callable[[PodBuilder], PodBuilder]
    takes: Mapping[str, Part]
    often: int = 1


def _share(cores: int, units: int) -> Part:
    return Part("share", cores, units * _UNIT_MIB)


_APP: Final = f"{CONTAINERS}-0"
_INIT: Final = f"{INIT_CONTAINERS}-0".lower()
_TENTH: Final = _share(10, 4)
_WHOLE: Final = Part("whole", _CORES, CARD_MIB)
_HALF: Final = Part("half", _CORES // 2, CARD_MIB // 2)

KINDS: Final = (
    Kind(lambda p: p.asks(core=10, memory=4), {_APP: _TENTH}, often=6),
    Kind(lambda p: p.init(core=10, memory=4).asks(core=10, memory=4), {_INIT: _TENTH, _APP: _TENTH}, often=6),
    Kind(lambda p: p.init(core=20, memory=8).asks(core=10, memory=4), {_INIT: _share(20, 8), _APP: _TENTH}),
    Kind(lambda p: p.init(core=10, memory=4).asks(core=20, memory=8), {_INIT: _TENTH, _APP: _share(20, 8)}),
    Kind(lambda p: p.init(core=10, memory=4).asks(), {_INIT: _TENTH}),
    Kind(lambda p: p.sidecar(core=10, memory=4).asks(core=10, memory=4), {_INIT: _TENTH, _APP: _TENTH}, often=3),
    Kind(
        lambda p: p.asks(core=10, memory=4).asks(core=10, memory=4),
        {_APP: _TENTH, f"{CONTAINERS}-1": _TENTH},
        often=3,
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
_OFTEN: Final = [kind.often for kind in KINDS]
_KIND: Final = "kind"
"""The label that says which."""

OFFERED: Final = (
    names.VCUDA_CORE,
    names.VCUDA_MEMORY,
    names.TUYA_SGPU,
    names.NVIDIA_GPU,
    names.ALIYUN_GPU_MEM,
    names.VOLCANO_GPU_MEMORY,
)
_WITHIN_S: Final = 90.0
_A_POD_S: Final = 2.0
"""Of this machine's containerd, when it is busy."""


@dataclass(slots=True)
class Crowd:
    """Pods of one namespace, always the same for the same seed."""

    gpus: GpuCluster
    namespace: str
    seed: int
    random: random.Random = field(init=False)
    _made: int = 0
    _alive: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def come(self, count: int) -> None:
        for _ in range(count):
            (number,) = self.random.choices(range(len(KINDS)), _OFTEN)
            name = f"p{self._made:04}"
            self._made += 1
            built = telling(KINDS[number].build(pod(name))).labelled({_KIND: str(number)})
            self.gpus.cluster.request("POST", self._path, built.manifest).must()
            self._alive.append(name)

    def go(self, count: int) -> None:
        for name in self.random.sample(self._alive, count):
            self._delete(name)

    def replace_failed(self) -> None:
        """As their controllers would: kubelet never takes up again who came while no agent was there."""
        failed = [name_of(each) for each in self.pods() if has_failed(each) and not is_leaving(each)]
        for name in failed:
            self._delete(name)
        self.come(len(failed))

    def go_all(self) -> None:
        for name in [*self._alive]:
            self._delete(name)
        self.gpus.cluster.wait_until(
            lambda: not self.pods(), what=f"all pods of {self.namespace} to go", seconds=self._patience_s()
        )

    def _delete(self, name: str) -> None:
        self._alive.remove(name)
        self.gpus.cluster.request("DELETE", f"{self._path}/{name}").must()

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def pods(self) -> list[Object]:
        found: list[Object] = self.gpus.cluster.request("GET", self._path).must()["items"]
        return found

    def on_node(self) -> list[Object]:
        """Without those that wait for a card."""
        return [each for each in self.pods() if node_of(each)]

    def running(self) -> list[Object]:
        return [each for each in self.on_node() if is_running(each)]

    def settled(self) -> list[Object]:
        """Once all pods with a node run, or leave, or were failed by kubelet; as they then are."""
        seen: list[Object] = []

        def starting() -> list[str]:
            return [name_of(each) for each in seen if not (is_running(each) or is_leaving(each) or has_failed(each))]

        def settled() -> bool:
            seen[:] = self.on_node()
            return not starting()

        wait_until(
            settled,
            what=f"the pods of {self.namespace} to run",
            seconds=self._patience_s(),
            details=lambda: self._told_of(starting()),
        )
        return seen

    def _patience_s(self) -> float:
        return _WITHIN_S + _A_POD_S * self._made

    def _told_of(self, waiting: Sequence[str]) -> str:
        described = [self.gpus.cluster.kubectl("-n", self.namespace, "describe", "pod", each) for each in waiting[:2]]
        return "\n".join([*waiting, *[each.stdout for each in described], self.gpus.agent.program.log_tail(40)])

    def wrong(self, seen: Sequence[Object], before: Sequence[Object] = ()) -> list[str]:
        """All that is not as it must be, a sentence each; `before` ran then, and some were deleted since."""
        told = [each for pod in seen if is_running(pod) for each in differences(self.gpus.cluster, pod)]
        return [*told, *overfull(each for each in seen if not has_failed(each)), *self._lost(seen, before)]

    def _lost(self, seen: Sequence[Object], before: Sequence[Object]) -> Iterator[str]:
        now = {each["metadata"]["uid"]: each for each in seen}
        for was in before:
            is_ = now.get(was["metadata"]["uid"])
            if is_ is None and name_of(was) in self._alive:
                yield f"{name_of(was)} is gone"
            elif is_ is not None and runs_of(is_) != runs_of(was):
                yield f"{name_of(was)} ran {runs_of(was)}, now {runs_of(is_)}: {is_['status'].get('message', '')}"


def name_of(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def has_failed(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Failed")


def is_leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_running(pod: Object) -> bool:
    return is_ready(pod) and not is_leaving(pod)


def runs_of(pod: Object) -> dict[str, str]:
    """The containers that go on, by name, as the runtime calls them."""
    statuses = pod["status"].get("containerStatuses", ())
    return {each["name"]: each.get("containerID", "") for each in statuses}


# --- who holds what ---------------------------------------------------------------------------------------------------


def overfull(pods: Iterable[Object]) -> list[str]:
    """Cards that hold more than there is, or in two ways, by the records of these pods; and pods without a record."""
    wrong: list[str] = []
    held: defaultdict[str, list[Part]] = defaultdict(list)
    for each in pods:
        if names.PLACEMENT not in annotations_of(each):
            wrong.append(f"{name_of(each)} has no record")
            continue
        for card, part in _peaks(each).items():
            held[card].append(part)
    return wrong + [f"card {card} holds {parts}" for card, parts in held.items() if not _fits(parts)]


def _peaks(pod: Object) -> dict[str, Part]:
    """What the pod takes at most of each card: plain init containers run alone, after the sidecars before them."""
    takes, recorded = KINDS[int(pod["metadata"]["labels"][_KIND])].takes, cards_of(pod)
    assert recorded.keys() == takes.keys(), f"{name_of(pod)}: {recorded}"
    staying: dict[str, Part] = {}
    peaks: dict[str, Part] = {}
    for container, stays in _in_order(pod):
        for card in recorded.get(container, ()):
            now = _plus(staying.get(card), takes[container])
            peaks[card] = _larger(peaks.get(card), now)
            if stays:
                staying[card] = now
    return peaks


def _in_order(pod: Object) -> Iterator[tuple[str, bool]]:
    """As they start, and whether they stay."""
    for container in pod["spec"].get(INIT_CONTAINERS, ()):
        yield container["name"], container.get("restartPolicy") == "Always"
    for container in pod["spec"][CONTAINERS]:
        yield container["name"], True


def _plus(one: Part | None, other: Part) -> Part:
    return other if one is None else Part(other.way, one.cores + other.cores, one.mib + other.mib)


def _larger(one: Part | None, other: Part) -> Part:
    return other if one is None else Part(other.way, max(one.cores, other.cores), max(one.mib, other.mib))


def _fits(parts: Sequence[Part]) -> bool:
    together = sum(part.cores for part in parts) <= _CORES and sum(part.mib for part in parts) <= CARD_MIB
    return together and len({part.way for part in parts}) == 1
