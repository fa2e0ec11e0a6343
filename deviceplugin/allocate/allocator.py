"""Answers kubelet's two calls: Allocate for a container of an unknown pod, and PreStartContainer for the one that
starts.

Invariant: Allocate answers only a slot; its content is written when the pod is known, and the runtime reads it after
that. A container starts with the cards of its pod's record, or it does not start and its pod's Events say why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from halfcard.cards import Card, CardLimit, Node
from halfcard.dialects import Dialect
from halfcard.placing.card_usage import CardUse
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import PlacedPod, RecordWriter, write
from halfcard.pod.stored_pod import StoredPod
from halfcard.problems import printable
from kube.api.calls import ApiCalls

from ..device_ids import is_ours
from ..inject.cdi import CardEdits, Edits, with_limits
from ..isolation.control import Held
from ..kubelet.channel import KubeletError
from ..kubelet.messages import Granted, ListedDevices, RefusedError
from ..node_pods import NodePods
from ..options import AgentOptions
from .assignment import check_fits, choose_share, recorded_share
from .container_identity import StartingContainer, identity_error, pods_holding
from .grant import Grant, PodOnCards, as_file, grant_of
from .pod_calls import UnansweredError, record, stored_pod
from .slots import Slot, Slots, slot_name

_TRIES: Final = 4
_LOOKS: Final = 10
_LOOK_S: Final = 0.05
_ID_CHARS: Final = 40
_CREATED_NS: Final = 30 * 10**9
"""The runtime reads a description when it creates the container, a moment after PreStartContainer."""


class Injector(Protocol):
    """Passes a grant to the runtime."""

    def answer(self, slot: str) -> Granted:
        """Returns the answer to Allocate."""

    def set_cards(self, slot: str, minors: Iterable[int]) -> None:
        """Sets the cards of the slot."""


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What the allocator knows of the node, and the sources it reads.

    Attributes:
        listed_devices: which container holds which ids, as pod-resources lists it.
        pods_with_ids: the pods, by kubelet's uid, with a container that holds exactly these ids; None for an unknown
            pod.
        node: its cards now; no container starts on a card with a `why_not`.
        pods: the pods of this node, as the watch last reported them.
        with_processes: filters pods, by uid, to those with a live process; called in a thread.
        card_files: what a container needs to reach these cards.
        hold: what holds the container of a slot to its limits, or why nothing does.
        single_id_resources: the resources of which a container may request only one.
    """

    listed_devices: Callable[[], Awaitable[tuple[ListedDevices, ...]]]
    pods_with_ids: Callable[[str, frozenset[str]], Mapping[str, PodFacts | None]]
    calls: ApiCalls
    node: Callable[[], Node]
    pods: NodePods
    with_processes: Callable[[Collection[str]], Collection[str]]
    card_files: Callable[[Sequence[Card]], CardEdits]
    hold: Callable[[str, Sequence[CardLimit], Edits], Held | str]
    single_id_resources: Callable[[], frozenset[str]]
    now_ns: Callable[[], int]


@dataclass(slots=True)
class Allocator:
    """Allocates; the slots must be loaded before plugins register with kubelet."""

    context: NodeContext
    options: AgentOptions
    slots: Slots
    injector: Injector
    _dialects: Mapping[str, Dialect] = field(init=False)
    _deciding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _recorded: dict[str, PodFacts] = field(default_factory=dict)
    """Pods whose records we wrote and the watch may not have reported yet."""

    def __post_init__(self) -> None:
        self._dialects = self.options.dialects.by_name

    # --- kubelet admits a pod -----------------------------------------------------------------------------------------

    def allocate(self, resource: str, ids: Sequence[str]) -> Granted:
        foreign = next((each for each in ids if not is_ours(each)), None)
        if foreign is not None:
            what = f"unknown device: {printable(foreign, _ID_CHARS)}; restart kubelet, so that it reads our ids again"
            raise RefusedError(_invalid(resource, what))
        if len(ids) > 1 and resource in self.context.single_id_resources():
            what = f"maximum request size for shared resources is 1; found {len(ids)}"
            fix = "more slices give no more compute: request 1, or set failRequestsGreaterThanOne: false"
            raise RefusedError(_invalid(resource, f"{what}; {fix}"))
        self.slots.retire(resource, ids)
        return self.injector.answer(slot_name(resource, ids))

    # --- kubelet creates a container ----------------------------------------------------------------------------------

    async def prestart(self, resource: str, ids: Sequence[str]) -> None:
        try:
            await self._prestart(resource, frozenset(ids))
        except KubeletError as why:
            raise RefusedError(str(why)) from None
        except OSError as error:
            raise RefusedError(f"the grant cannot be written: {error}; check the node's disk") from None

    async def _prestart(self, resource: str, ids: frozenset[str]) -> None:
        container = await self._identify(resource, ids)
        for _ in range(_TRIES):
            try:
                pod = await stored_pod(self.context.calls, container.namespace, container.pod)
            except UnansweredError as why:
                self._reuse(container, str(why))
                return
            async with self._deciding:
                if await self._grant(pod, container):
                    return
        raise RefusedError(f"pod {container.title} changes faster than its cards can be recorded; kubelet tries again")

    async def _identify(self, resource: str, ids: frozenset[str]) -> StartingContainer:
        """Kubelet may have allocated an id twice: a pod that holds some of these ids need not hold exactly these."""
        pods = await self._pods_with_ids(resource, ids)
        exact = [
            StartingContainer(each.namespace, each.name, resource, ids, "", uid) for uid, each in pods.items() if each
        ]
        found = pods_holding(await self.context.listed_devices(), resource, ids)
        if len(exact) == len(pods) == 1:
            listed = (each.listed for each in found if each.title == exact[0].title)
            return exact[0]._replace(listed=next(listed, ""))
        if len(found) == 1 and len(pods) < 2:
            return found[0]._replace(uid="".join(pods))
        raise identity_error(exact or found, resource, ids)

    async def _pods_with_ids(self, resource: str, ids: frozenset[str]) -> Mapping[str, PodFacts | None]:
        """Waits a moment for the watch to report a pod that has just been bound."""
        for _ in range(_LOOKS):
            found = self.context.pods_with_ids(resource, ids)
            if None not in found.values():
                return found
            await asyncio.sleep(_LOOK_S)
        return found

    async def _grant(self, stored: StoredPod, container: StartingContainer) -> bool:
        """Writes the grant; False where the pod has changed since it was read. Refuses before anything is written."""
        self._check(stored, container)
        facts, node = self.context.pods.facts(stored), self.context.node()
        share = (
            self.context.pods.known_share(facts, node)
            or recorded_share(facts, node)
            or choose_share(facts, node, *self._others())
        )
        pod = PodOnCards(facts, stored.annotations, node, share)
        await self._check_room(container.title, stored.kubelet_uid, pod)
        grant = self._held(grant_of(pod, container, self._dialects, self.context.card_files), container)
        if not share.recorded and not await self._record(pod):
            return False
        self._write(container, stored.kubelet_uid, grant, pod.uses)
        return True

    def _held(self, grant: Grant, container: StartingContainer) -> Grant:
        held = self.context.hold(slot_name(container.resource, container.ids), grant.limits.cards, grant.files.edits)
        return grant.held(held) if isinstance(held, Held) else grant.not_held(held)

    def _check(self, pod: StoredPod, container: StartingContainer) -> None:
        node, slot = self.context.node().name, self.slots.get(slot_name(container.resource, container.ids))
        if pod.node != node:
            raise RefusedError(f'pod {container.title} is bound to node "{pod.node}"; this is node {node}')
        if pod.is_over:
            raise RefusedError(f"pod {container.title} has ended, and its cards are free; delete it")
        wanted = container.uid or (slot.uid if slot is not None else pod.kubelet_uid)
        if pod.kubelet_uid != wanted:  # ids change hands by Allocate alone, and that would have cleared the slot
            raise RefusedError(f"these device ids belong to an earlier pod {container.title}; kubelet tries again")

    def _reuse(self, container: StartingContainer, why: str) -> None:
        """Reuses the slot's last grant: records are never rewritten, and Allocate would have cleared the slot."""
        slot = self.slots.get(slot_name(container.resource, container.ids))
        same = slot is not None and (slot.namespace, slot.pod) == (container.namespace, container.pod)
        if slot is None or not same or container.uid not in ("", slot.uid):
            what = f"its cards cannot be read from the API server: {why}; kubelet tries again"
            raise RefusedError(f"pod {container.title}: {what}")
        check_fits(container.title, self.context.node(), slot.uses, ())
        self.slots.show(slot.name, self.context.now_ns())

    def _write(self, container: StartingContainer, uid: str, grant: Grant, uses: dict[str, CardUse]) -> None:
        limits, ids = grant.limits, tuple(sorted(container.ids))
        holder = limits.namespace, limits.pod, uid, limits.containers
        slot = Slot(*holder, container.resource, ids, uses, self.context.now_ns(), grant.holding)
        edits = with_limits(grant.files.edits, grant.variables, str(self.slots.limits_file(slot.name)))
        self.slots.write(slot, edits, grant.files.version, as_file(limits), grant.controls)
        self.injector.set_cards(slot.name, [card.index for card in grant.cards])

    # --- choosing and recording ---------------------------------------------------------------------------------------

    def _others(self) -> tuple[list[PodFacts], list[PodFacts]]:
        """Returns the pods that hold cards, and those that wait for a start without a record."""
        holding: dict[str, PodFacts] = {}
        waiting: dict[str, PodFacts] = {}
        for pod, facts in self.context.pods.with_claims():
            (holding if pod.runs or facts.has_record else waiting)[facts.uid] = facts
        for uid in self._recorded.keys() & holding:
            del self._recorded[uid]
        newly = self._recorded
        return [*holding.values(), *newly.values()], [pod for uid, pod in waiting.items() if uid not in newly]

    async def _record(self, pod: PodOnCards) -> bool:
        facts = pod.facts
        placed = PlacedPod(pod.node, facts.containers, facts.demand.needs, pod.share.layout)
        annotations = write(placed, self.context.now_ns(), self.options.dialects, by=RecordWriter.AGENT)
        written = await record(self.context.calls, facts, annotations)
        if written is not None:
            self._recorded[facts.uid] = self.context.pods.facts(written)
        return written is not None

    # --- what is left, and what has ended -----------------------------------------------------------------------------

    async def _check_room(self, title: str, uid: str, pod: PodOnCards) -> None:
        """Checks the room; on failure frees the slots of ended containers and checks once more."""
        try:
            check_fits(title, pod.node, pod.uses, self.slots.other_pods(uid))
        except RefusedError:
            await self.sweep()
            check_fits(title, pod.node, pod.uses, self.slots.other_pods(uid))

    async def sweep(self) -> tuple[Slot, ...]:
        """Frees the slots of containers that have ended, and returns them. Raises KubeletError."""
        before_ns = self.context.now_ns()
        self.slots.hide(before_ns - _CREATED_NS)
        listed = await self.context.listed_devices()
        # a search for processes takes long: only for these pods, in a thread
        unlisted = self.slots.unlisted_pods(listed)
        running = await asyncio.to_thread(self.context.with_processes, unlisted) if unlisted else ()
        freed = self.slots.remove_ended(before_ns, listed, self.slots.uids() - unlisted.difference(running))
        for slot in freed:
            self._recorded.pop(slot.uid, None)
        return freed


def _invalid(resource: str, what: str) -> str:
    return f'invalid allocation request for "{resource}": {what}'
