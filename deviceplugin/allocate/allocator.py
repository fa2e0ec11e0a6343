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

from halfcard.cards import Card, Node
from halfcard.placing.card_usage import CardUse
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.placing.records import PlacedPod, write
from halfcard.pod.stored_pod import StoredPod
from halfcard.problems import printable
from kube.api.calls import ApiCalls

from ..device_ids import is_ours
from ..inject.card_files import CardEdits
from ..kubelet.channel import KubeletError
from ..kubelet.messages import Granted, ListedDevices, RefusedError
from ..options import AgentOptions
from .assignment import check_fits, chosen, recorded, uses_of
from .container_identity import StartingContainer, nobody_knows, starting
from .container_limits import as_file
from .grant import PlacedContainers, SlotGrant, gift
from .pod_calls import SilentError, record, stored_pod
from .slots import Slot, Slots, slot_name

_TRIES: Final = 4
_LOOKS: Final = 10
_LOOK_S: Final = 0.05
_ID_CHARS: Final = 40
_CREATED_NS: Final = 30 * 10**9
"""The runtime reads a description when it creates the container, a moment after we have written it."""


class Injector(Protocol):
    """Passes a grant to the runtime."""

    def granted(self, slot: str) -> Granted:
        """The answer of Allocate."""

    def point(self, slot: str, minors: Iterable[int]) -> None:
        """These are the slot's cards."""


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What the allocator knows of the node, and the sources it asks.

    Attributes:
        held: which container holds which ids, as pod-resources lists it.
        exactly: the pods, by kubelet's uid, with a container that holds exactly these ids; None for an unknown pod.
        node: its cards now; no container starts on a card with a `why_not`.
        pods: the pods of this node, from the watch.
        living: filters pods, by uid, to those with a live process; called in a thread.
        files: what a container needs to reach these cards.
        single: the resources of which a container may request only one.
    """

    held: Callable[[], Awaitable[tuple[ListedDevices, ...]]]
    exactly: Callable[[str, frozenset[str]], Mapping[str, PodFacts | None]]
    calls: ApiCalls
    node: Callable[[], Node]
    pods: Callable[[], Iterable[PodFacts]]
    living: Callable[[Collection[str]], Collection[str]]
    files: Callable[[Sequence[Card]], CardEdits]
    single: Callable[[], frozenset[str]]
    now_ns: Callable[[], int]


@dataclass(slots=True)
class Allocator:
    """Allocates; the slots must be loaded before kubelet knows the plugins."""

    around: NodeContext
    agreed: AgentOptions
    slots: Slots
    way: Injector
    _deciding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _written: dict[str, PodFacts] = field(default_factory=dict)
    """Pods whose records we wrote and the watch may not have seen."""

    # --- kubelet admits a pod -----------------------------------------------------------------------------------------

    def allocate(self, resource: str, ids: Sequence[str]) -> Granted:
        stranger = next((each for each in ids if not is_ours(each)), None)
        if stranger is not None:
            what = (
                f"unknown device: {printable(stranger, _ID_CHARS)}; restart kubelet, so that it asks for our ids anew"
            )
            raise RefusedError(_invalid(resource, what))
        if len(ids) > 1 and resource in self.around.single():
            what = f"maximum request size for shared resources is 1; found {len(ids)}"
            fix = "more slices are no more compute: ask for 1, or set failRequestsGreaterThanOne: false"
            raise RefusedError(_invalid(resource, f"{what}; {fix}"))
        self.slots.leave(resource, ids)
        return self.way.granted(slot_name(resource, ids))

    # --- kubelet creates a container ----------------------------------------------------------------------------------

    async def prestart(self, resource: str, ids: Sequence[str]) -> None:
        if not all(map(is_ours, ids)):
            return  # another plugin gave them, and kubelet starts the container with what that one answered
        try:
            await self._prestart(resource, frozenset(ids))
        except KubeletError as why:
            raise RefusedError(str(why)) from None
        except OSError as error:
            raise RefusedError(f"what the container gets cannot be written: {error}; see the node's disk") from None

    async def _prestart(self, resource: str, ids: frozenset[str]) -> None:
        who = await self._who(resource, ids)
        for _ in range(_TRIES):
            try:
                pod = await stored_pod(self.around.calls, who.namespace, who.pod)
            except SilentError as silent:
                self._reuse(who, str(silent))
                return
            async with self._deciding:
                if await self._serve(pod, who):
                    return
        raise RefusedError(f"pod {who.title} changes faster than its cards can be recorded; kubelet tries again")

    async def _who(self, resource: str, ids: frozenset[str]) -> StartingContainer:
        """Kubelet may have given an id away twice: who holds some of these is not yet who holds exactly these."""
        exactly = await self._exactly(resource, ids)
        exact = [
            StartingContainer(each.namespace, each.name, resource, ids, "", uid)
            for uid, each in exactly.items()
            if each
        ]
        found = starting(await self.around.held(), resource, ids)
        if len(exact) == len(exactly) == 1:
            listed = (each.listed for each in found if each.title == exact[0].title)
            return exact[0]._replace(listed=next(listed, ""))
        if len(found) == 1 and len(exactly) < 2:
            return found[0]._replace(uid="".join(exactly))
        raise nobody_knows(exact or found, resource, ids)

    async def _exactly(self, resource: str, ids: frozenset[str]) -> Mapping[str, PodFacts | None]:
        """A pod that has just been bound is seen in a moment."""
        for _ in range(_LOOKS):
            found = self.around.exactly(resource, ids)
            if None not in found.values():
                return found
            await asyncio.sleep(_LOOK_S)
        return found

    async def _serve(self, pod: StoredPod, who: StartingContainer) -> bool:
        """False where the pod has changed since it was read. All that can be refused is, before a thing is written."""
        self._check(pod, who)
        facts, node = read_facts(pod, self.agreed.dialects), self.around.node()
        found = recorded(facts, node)
        laid = PlacedContainers(pod, facts, node, chosen(facts, node, self._pods()) if found is None else found)
        uses = uses_of(facts, node, laid.layout)
        await self._check_room(laid, uses)
        given = gift(laid, who, self.agreed, self.around.files)
        if found is None and not await self._record(laid):
            return False
        self._hand(who, pod.kubelet_uid, given, uses)
        return True

    def _check(self, pod: StoredPod, who: StartingContainer) -> None:
        node, given = self.around.node().name, self.slots.get(slot_name(who.resource, who.ids))
        if pod.node != node:
            raise RefusedError(f'pod {who.title} is bound to node "{pod.node}", and this is {node}')
        if pod.is_over:
            raise RefusedError(f"pod {who.title} is over, and its cards are free again; delete it")
        meant = who.uid or (given.uid if given is not None else pod.kubelet_uid)
        if pod.kubelet_uid != meant:  # ids change hands by Allocate alone, and that would have cleared the slot
            raise RefusedError(f"kubelet means an earlier pod {who.title} than there is now; it tries again")

    def _reuse(self, who: StartingContainer, why: str) -> None:
        """Reuses the slot's last grant: records are never rewritten, and Allocate would have cleared the slot."""
        slot = self.slots.get(slot_name(who.resource, who.ids))
        same = slot is not None and (slot.namespace, slot.pod) == (who.namespace, who.pod)
        if slot is None or not same or who.uid not in ("", slot.uid):
            what = f"the API server does not say which cards it has: {why}; kubelet tries again"
            raise RefusedError(f"pod {who.title}: {what}")
        check_fits(who.title, self.around.node(), slot.uses, ())
        self.slots.show(slot.name, self.around.now_ns())

    def _hand(self, who: StartingContainer, uid: str, given: SlotGrant, uses: Mapping[str, CardUse]) -> None:
        limits, ids = given.limits, tuple(sorted(who.ids))
        holder = limits.namespace, limits.pod, uid, limits.containers
        slot = Slot(*holder, who.resource, ids, dict(uses), self.around.now_ns())
        edits = given.edits(self.slots.limits_file(slot.name))
        self.slots.put(slot, edits, given.files.version, as_file(limits))
        self.way.point(slot.name, [card.index for card in given.cards])

    # --- choosing and recording ---------------------------------------------------------------------------------------

    def _pods(self) -> list[PodFacts]:
        pods = {pod.uid: pod for pod in self.around.pods()}
        for uid in [uid for uid in self._written if uid in pods and pods[uid].bound().named is not None]:
            del self._written[uid]
        return list({**pods, **self._written}.values())

    async def _record(self, laid: PlacedContainers) -> bool:
        facts, unit = laid.facts, self.agreed.dealings.aliyun_unit_mib
        placed = PlacedPod(laid.node, facts.containers, facts.demand.needs, laid.layout, unit)
        annotations = write(placed, self.around.now_ns(), self.agreed.prefixes)
        written = await record(self.around.calls, facts, annotations)
        if written is not None:
            self._written[facts.uid] = read_facts(written, self.agreed.dialects)
        return written is not None

    # --- what is left, and what has ended -----------------------------------------------------------------------------

    async def _check_room(self, laid: PlacedContainers, uses: Mapping[str, CardUse]) -> None:
        """Checks the room, and once more after a pause: a pod in the way may have ended a moment ago."""
        title, node, uid = laid.facts.title, laid.node, laid.pod.kubelet_uid
        try:
            check_fits(title, node, uses, self.slots.tenants(uid))
        except RefusedError:
            await self.sweep()
            check_fits(title, node, uses, self.slots.tenants(uid))

    async def sweep(self) -> tuple[Slot, ...]:
        """Frees the slots of containers that have ended, and says which. Raises KubeletError."""
        before_ns = self.around.now_ns()
        self.slots.hide(before_ns - _CREATED_NS)
        held = await self.around.held()
        asked = self.slots.unlisted(held)  # to look for the processes of all pods takes long, and none may be missed
        ended = asked.difference(await asyncio.to_thread(self.around.living, asked)) if asked else asked
        freed = self.slots.free(before_ns, held, self.slots.uids() - ended)
        for slot in freed:
            self._written.pop(slot.uid, None)
        return freed


def _invalid(resource: str, what: str) -> str:
    return f'invalid allocation request for "{resource}": {what}'
