"""Reports the usage of the node's cards, from the grants and from what the driver shows.

Invariant: the sum of the containers of a card is never more than what is granted of the card, and that is never more
than the card; a process counts for the container that was granted the card, or is listed as unaccounted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from halfcard.cards import Node
from halfcard.claims import UNIT_MIB, Claim, ContainerStage
from halfcard.isolation.mode import IsolationMode
from halfcard.placing.card_usage import LIMITED, CardMode, use_of, use_of_card, worth
from halfcard.placing.node_usage import NodeUsage
from halfcard.placing.pod_facts import PodFacts

from ..gpus.interface import Load, Process
from .cgroup_paths import Owner

_TOLERANCE_PCT: Final = 5
_TOLERANCE_MIB: Final = 256
"""The driver counts the context of each process, too, which programs cannot measure."""


class StartedPod(NamedTuple):
    """A pod, and its containers that were ever started: their ids by name, as in its status."""

    facts: PodFacts
    apps: Mapping[str, str]
    inits: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnaccountedProcess:
    """A process on a card that its pod was not granted.

    Attributes:
        pod: namespace/name, or the uid of a pod without claims; empty for a process of the node itself.
        uid: that of the pod.
    """

    pid: int
    memory_mib: int
    pod: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class CardUsage:
    """One card; used amounts are None while the driver does not answer.

    Attributes:
        cores: what is granted of it, in per cent, like `memory_mib`: half a card counts as half of both.
        total_mib: None where it is unknown.
        why_not: why it gets no new containers; empty for a healthy card.
    """

    index: int
    uuid: str
    model: str
    mode: CardMode
    cores: int
    memory_mib: int
    total_mib: int | None
    used_cores: int | None
    used_mib: int | None
    why_not: str
    strangers: tuple[UnaccountedProcess, ...]


@dataclass(frozen=True, slots=True)
class AccountUsage:
    """What the running processes of a held container say of one card in its account, which they could forge.

    Attributes:
        refused: how many allocations were answered with OUT_OF_MEMORY.
        throttled_ms: how long launches waited for the container's share of the cores.
    """

    memory_mib: int
    refused: int
    throttled_ms: int


@dataclass(frozen=True, slots=True)
class PartUsage:
    """What a container is granted of one card, and uses; 0 cores mean no share and no limit.

    Attributes:
        is_limited: whether the granted memory is a limit; a whole card and a time slice have none.
        account: None where the container is not held.
    """

    card: int
    uuid: str
    cores: int
    memory_mib: int
    total_mib: int
    used_cores: int
    used_mib: int
    pids: tuple[int, ...]
    is_limited: bool = False
    account: AccountUsage | None = None

    @property
    def excess_mib(self) -> int:
        """Returns the used memory beyond the limit; 0 within the tolerance."""
        excess = self.used_mib - self.memory_mib
        tolerance = self.memory_mib * _TOLERANCE_PCT // 100 + _TOLERANCE_MIB
        return excess if self.is_limited and excess > tolerance else 0


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """One container that has cards now.

    Attributes:
        asked_mib: the request for all cards together; all of their memory where it names none.
    """

    namespace: str
    pod: str
    uid: str
    container: str
    asked_mib: int
    cards: tuple[PartUsage, ...]

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.pod}/{self.container}"


@dataclass(frozen=True, slots=True)
class IsolationState:
    """Whether a node holds containers of shares; `why_not` is why it cannot where it should."""

    mode: IsolationMode = IsolationMode.OFF
    why_not: str = ""

    @property
    def holds(self) -> bool:
        return self.mode is not IsolationMode.OFF and not self.why_not


@dataclass(frozen=True, slots=True)
class NodeUsageReport:
    """The usage of one node; `is_made_up` where its cards are fake."""

    node: str
    is_made_up: bool
    cards: tuple[CardUsage, ...]
    containers: tuple[ContainerUsage, ...]
    isolation: IsolationState = IsolationState()


def usage_of(
    node: Node,
    usage: NodeUsage,
    pods: Sequence[StartedPod],
    loads: Mapping[str, Load],
    owners: Mapping[int, Owner],
    *,
    is_made_up: bool = False,
) -> NodeUsageReport:
    """Returns the report; `loads` are by uuid, without cards that the driver does not read; `owners` are by pid."""
    rows = [row for pod in pods for row in _rows(pod, usage)]
    whose = _RowFinder(pods, rows)
    processes: dict[tuple[int, int], list[Process]] = defaultdict(list)
    strangers: dict[int, list[UnaccountedProcess]] = defaultdict(list)
    for at, process in _running(node, loads):
        owner = owners.get(process.pid)
        number = owner and whose.row(owner, at)
        if number is None:
            strangers[at].append(whose.stranger(process, owner))
        else:
            processes[number, at].append(process)
    cards = [_card(node, usage, at, loads.get(card.uuid), strangers[at]) for at, card in enumerate(node.cards)]
    containers = [
        _container(node, usage, row, {at: processes[number, at] for at in row.times}) for number, row in enumerate(rows)
    ]
    return NodeUsageReport(node.name, is_made_up, tuple(cards), tuple(containers))


def _running(node: Node, loads: Mapping[str, Load]) -> Iterator[tuple[int, Process]]:
    for at, card in enumerate(node.cards):
        if load := loads.get(card.uuid):
            yield from ((at, process) for process in load.processes)


# --- who has cards now -----------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """A container that has cards now, and how many times each, by position."""

    facts: PodFacts
    name: str
    claim: Claim
    times: Counter[int]


def _rows(pod: StartedPod, usage: NodeUsage) -> Iterator[_Row]:
    facts, share = pod.facts, usage.shares.get(pod.facts.uid)
    for number in _running_containers(pod) if share else ():
        need = facts.demand.needs[number]
        yield _Row(facts, facts.containers[number], need.claim, Counter(share.layout[number] if share else ()))


def _running_containers(pod: StartedPod) -> list[int]:
    """The pod's app containers and sidecars; while it still initialises, the init container that was started last."""
    needs, containers = pod.facts.demand.needs, pod.facts.containers
    begun = [at for at, need in enumerate(needs) if need.stage is ContainerStage.INIT and pod.inits.get(containers[at])]
    if any(pod.apps.values()) or not begun:
        return [at for at, need in enumerate(needs) if need.stage is not ContainerStage.INIT]
    now = begun[-1]
    beside = [
        at for at, need in enumerate(needs) if need.stage is ContainerStage.SIDECAR and need.order < needs[now].order
    ]
    return [*beside, now]


class _RowFinder:
    """Finds the row of a process, by its container's id; a new container is not in the pod's status yet."""

    def __init__(self, pods: Iterable[StartedPod], rows: Sequence[_Row]) -> None:
        self._titles: dict[str, str] = {}
        self._by_id: dict[str, tuple[str, str]] = {}
        for facts, apps, inits in pods:
            self._titles[facts.uid] = facts.title
            for name, written in (*apps.items(), *inits.items()):
                if written:
                    self._by_id[_without_runtime(written)] = facts.uid, name
        self._rows: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
        for number, row in enumerate(rows):
            for at in row.times:
                self._rows[row.facts.uid, at][row.name] = number

    def row(self, owner: Owner, at: int) -> int | None:
        """Returns the row of a container on a card; None where it has nothing of that card."""
        if known := self._by_id.get(owner.container):
            uid, name = known
            return self._rows.get((uid, at), {}).get(name)
        there = [*self._rows.get((owner.pod, at), {}).values()]
        return there[0] if len(there) == 1 else None

    def stranger(self, process: Process, owner: Owner | None) -> UnaccountedProcess:
        if owner is None:
            return UnaccountedProcess(process.pid, process.memory_mib)
        uid, _ = self._by_id.get(owner.container, (owner.pod, ""))
        return UnaccountedProcess(process.pid, process.memory_mib, self._titles.get(uid, uid), uid)


def _without_runtime(written: str) -> str:
    """Removes the name of the runtime from an id such as containerd://5f."""
    return written.rpartition("/")[2]


# --- what they have --------------------------------------------------------------------------------------------------


def _card(
    node: Node, usage: NodeUsage, at: int, load: Load | None, strangers: Iterable[UnaccountedProcess]
) -> CardUsage:
    card, left = node.cards[at], usage.room.left[at]
    cores, mib = worth(card, use_of_card(card, left))
    return CardUsage(
        card.index,
        card.uuid,
        card.model,
        left.mode,
        cores,
        mib,
        card.memory_mib,
        None if load is None else load.cores_pct,
        None if load is None else load.used_mib,
        card.why_not,
        tuple(strangers),
    )


def _container(node: Node, usage: NodeUsage, row: _Row, processes: Mapping[int, Sequence[Process]]) -> ContainerUsage:
    facts = row.facts
    parts = tuple(_part(node, usage, row, at, processes[at]) for at in sorted(row.times))
    asked = _requested_mib(row.claim) or sum(part.memory_mib for part in parts)
    return ContainerUsage(facts.namespace, facts.name, facts.uid, row.name, asked, parts)


def _part(node: Node, usage: NodeUsage, row: _Row, at: int, processes: Sequence[Process]) -> PartUsage:
    card = node.cards[at]
    use = use_of(row.claim, card, usage.room.slices, row.times[at])
    cores, mib = worth(card, use)
    return PartUsage(
        card.index,
        card.uuid,
        cores,
        mib,
        card.memory_mib or 0,
        sum(process.cores_pct for process in processes),
        sum(process.memory_mib for process in processes),
        tuple(sorted(process.pid for process in processes)),
        use.mode in LIMITED,
    )


def _requested_mib(claim: Claim) -> int:
    """Returns the requested memory; for whole cards it was requested for all of them together, in units."""
    asked = (claim.memory_mib or 0) * claim.cards
    return asked - asked % UNIT_MIB if claim.exclusive else asked
