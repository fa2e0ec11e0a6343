"""Binds a pod: chooses cards, assumes them, and writes node and record in one request.

Invariant: cards are assumed before the request is sent, and the assumption is forgotten only when it is certain that
nothing was written. The Binding names the version of the pod that was read, and a new leader fences every pod that has
no node yet: a Binding that arrives later fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import count
from typing import Final, Protocol

import msgspec

from halfcard import names
from halfcard.api_paths import path_of_pod
from halfcard.dialects import Dialects
from halfcard.placing.demand import Demand
from halfcard.placing.driver_demand import may_go_to_driver
from halfcard.placing.layouts import Layout, best, fits
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.placing.reasons import text, why_not
from halfcard.placing.records import PlacedPod, RecordWriter, write
from halfcard.placing.room import Room
from halfcard.pod.stored_pod import StoredPod
from halfcard.problems import printable
from halfcard.quota.pod_location import kind_of, location_of, widest_location
from kube.api.calls import Answer, NoAnswerError, NotSentError
from kube.ledger.joint_reservation import Reservation

from ..packing.placement import PackingPolicy
from ..quota_limits import QuotaLimits, narrowed
from ..state import State
from ..unplaceable import Unplaceable, check_no_record
from .pod_requests import BindCall, binding, binding_path, fence_patch, pod_path
from .quota_reservations import NO_RESERVATION, NoBudgetError, QuotaReservations

_TRIES: Final = 4
_POD: Final = msgspec.json.Decoder(StoredPod)
_QUOTED_CHARS: Final = 400


class PodCalls(Protocol):
    """The calls to an API server that a bind makes, all about one pod; see ApiCalls."""

    async def get(self, path: str) -> Answer: ...

    async def post(self, path: str, body: bytes) -> Answer: ...

    async def patch(self, path: str, body: bytes) -> Answer: ...


class NotBound(Exception):
    """The pod is not bound; the text is a sentence for its events."""


class NotLeading(Exception):
    """Another replica is the leader now."""


class _Outdated(Exception):
    """The pod has changed since it was read; the assumption is forgotten."""


@dataclass(frozen=True, slots=True)
class BindRules:
    """How cards are chosen and recorded.

    Attributes:
        policy_of: returns a policy by name, the default for an empty name.
        now_ns: returns the time for records.
        may_decide: returns whether this replica still leads; called before each write.
        term: returns the prefix of this term's fences, which is new in each term.
    """

    policy_of: Callable[[str], PackingPolicy]
    dialects: Dialects
    now_ns: Callable[[], int]
    may_decide: Callable[[], bool]
    term: Callable[[], str]


@dataclass(slots=True)
class Binder:
    state: State
    calls: PodCalls
    rules: BindRules
    budgets: QuotaReservations
    _in_progress: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    _fences: Iterator[int] = field(default_factory=count)

    async def bind(self, call: BindCall) -> None:
        """Returns once the pod is bound to the node, now or earlier.

        Raises:
            NotBound: the pod is not bound.
            NotLeading: another replica has to bind it.
        """
        while (earlier := self._in_progress.get(call.pod_uid)) is not None:
            await asyncio.wait([earlier])
        done = self._in_progress[call.pod_uid] = asyncio.get_running_loop().create_future()
        try:
            await self._bind(call)
        finally:
            del self._in_progress[call.pod_uid]
            done.set_result(None)

    async def _bind(self, call: BindCall) -> None:
        for _ in range(_TRIES):
            facts = self.state.pod(call.pod_uid)
            if facts is None or self._has_foreign_fence(facts):
                facts = await self._read(call)
            self._check(facts, call)
            if self._has_foreign_fence(facts):
                facts = await self._replace_fence(facts, call)
            if facts.node:
                return
            try:
                await self._place(facts, call.node)
            except _Outdated:
                await self._read(call)
            else:
                return
        raise NotBound(f"pod {call.pod_namespace}/{call.pod_name} changes faster than it can be bound; try again")

    def _check(self, facts: PodFacts, call: BindCall) -> None:
        if facts.node and facts.node != call.node:
            raise NotBound(f"pod {facts.title} is bound to node {facts.node} already, not to {call.node}")
        if facts.node:
            return
        if facts.trouble:
            raise NotBound(facts.trouble)
        try:
            check_no_record(facts)
        except Unplaceable as forged:
            raise NotBound(str(forged)) from None

    def _has_foreign_fence(self, facts: PodFacts) -> bool:
        """Returns whether another leader fenced the pod: a later one, or an earlier one after our takeover."""
        fence = facts.owned.get(names.FENCE)
        return not facts.node and fence is not None and not fence.startswith(self.rules.term())

    async def _replace_fence(self, facts: PodFacts, call: BindCall) -> PodFacts:
        """Replaces the fence of an earlier leader, whose bind then fails; a fence of a later leader is kept."""
        if not self.rules.may_decide():
            raise NotLeading
        answer = await self._answer(self.calls.patch(pod_path(facts), fence_patch(facts.uid, self.next_fence())))
        if answer.status == HTTPStatus.OK:
            self.state.put_pod(_POD.decode(answer.body))
        return await self._read(call)

    # --- one try ----------------------------------------------------------------------------------------------------

    async def _place(self, facts: PodFacts, node: str) -> None:
        layout = self._choose(facts, node)
        assumed = replace(facts, node=node, owned=self._record(facts, node, layout))
        if not self.rules.may_decide():
            raise NotLeading
        self.state.assume(assumed)
        reservation = await self._reserve(assumed, layout)
        try:
            await self._send(assumed)
        except (NotBound, _Outdated):
            reservation.release()  # the pod is certainly not bound; if the result is unknown, the reservation expires
            raise

    async def _reserve(self, assumed: PodFacts, layout: Layout) -> Reservation:
        needs = assumed.demand.needs
        if not needs:
            return NO_RESERVATION
        node = self.state.nodes()[assumed.node]
        place = location_of(node, needs, layout) if layout else widest_location(kind_of(node), needs)
        try:
            reservation = await self.budgets.reserve(assumed, place, self.next_fence())
        except NoBudgetError as why:
            self.state.forget(assumed.uid)
            raise NotBound(str(why)) from None
        if not self.rules.may_decide():
            reservation.release()
            self.state.forget(assumed.uid)
            raise NotLeading
        return reservation

    async def _send(self, assumed: PodFacts) -> None:
        try:
            answer = await self.calls.post(binding_path(assumed), binding(assumed))
        except NotSentError as error:
            self.state.forget(assumed.uid)
            raise NotBound(f"the API server cannot be reached: {error}") from None
        except NoAnswerError:
            await self._resolve_unknown(assumed)
        else:
            await self._handle(assumed, answer)

    def _choose(self, facts: PodFacts, node: str) -> Layout:
        """Chooses the best layout on the node; empty where the pod gets no card of ours."""
        if not facts.demand.needs:
            return ()
        if self._is_left_to_driver(facts, node):
            self._check_limits(facts, node)
            return ()
        room = self.state.room(node)
        if room is None:
            raise NotBound(f"node {node} is unknown to Halfcard; try again when its cards are published")
        kind, limits = self.state.kind(node), self._limits(facts)
        closed = limits.closed(kind)
        demand = narrowed(facts.demand, closed) if closed else facts.demand
        laid = best(room, demand, self.rules.policy_of(demand.wanted.policy).value)
        if laid is None:
            why = _no_room(room, facts.demand) or limits.why_not(kind, facts.demand, lambda: room)
            raise NotBound(f"node {node}: {why}; the scheduler will choose again")
        return laid.layout

    def _is_left_to_driver(self, facts: PodFacts, node: str) -> bool:
        """Returns whether kube-scheduler has reserved the pod's cards by Dynamic Resource Allocation."""
        return bool(self.state.driver(node)) and may_go_to_driver(facts.demand)

    def _check_limits(self, facts: PodFacts, node: str) -> None:
        if why := self._limits(facts).why_not_of_driver(self.state.kind(node)):
            raise NotBound(f"node {node}: {why}; the scheduler will choose again")

    def _limits(self, facts: PodFacts) -> QuotaLimits:
        try:
            return self.budgets.limits(facts)
        except NoBudgetError as why:
            raise NotBound(str(why)) from None

    def _record(self, facts: PodFacts, node: str, layout: Layout) -> dict[str, str]:
        """Returns the record as annotations."""
        if not layout:
            return {}
        placed = PlacedPod(self.state.nodes()[node], facts.containers, facts.demand.needs, layout)
        return write(placed, self.rules.now_ns(), self.rules.dialects, by=RecordWriter.EXTENDER)

    async def _handle(self, assumed: PodFacts, answer: Answer) -> None:
        if answer.status in (HTTPStatus.OK, HTTPStatus.CREATED):
            return
        if answer.status == HTTPStatus.CONFLICT:
            await self._after_conflict(assumed, answer)
            return
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            await self._resolve_unknown(assumed)
            return
        if answer.status == HTTPStatus.NOT_FOUND:
            self.state.end_pod(assumed.uid)
            raise NotBound(f"pod {assumed.title} is gone")
        self.state.forget(assumed.uid)
        raise _refused(assumed, answer)

    async def _after_conflict(self, assumed: PodFacts, answer: Answer) -> None:
        """Reads the pod: it is bound already, deleted, changed, or refused as it is."""
        try:
            found = await self._fetch(assumed.namespace, assumed.name)
        except NotBound:
            self.state.forget(assumed.uid)  # a conflict wrote nothing; the watch shows any other change
            raise
        if found is None or found.meta.uid != assumed.uid:
            self.state.end_pod(assumed.uid)
            raise NotBound(f"pod {assumed.title} is gone")
        if found.node == assumed.node and found.annotations.get(names.PLACEMENT) == assumed.owned.get(names.PLACEMENT):
            return
        self.state.forget(assumed.uid)
        self.state.put_pod(found)
        if found.meta.resource_version == assumed.version:
            raise _refused(assumed, answer)
        raise _Outdated

    async def _resolve_unknown(self, assumed: PodFacts) -> None:
        """Fences the pod after a request without an answer: the bind is stored by now, or it fails later."""
        found = await self._fenced(assumed)
        if found is None or found.meta.uid != assumed.uid:
            self.state.end_pod(assumed.uid)
            raise NotBound(f"pod {assumed.title} is gone")
        if found.node == assumed.node:
            return
        self.state.forget(assumed.uid)
        self.state.put_pod(found)
        raise NotBound(f"pod {assumed.title} was not bound: the API server did not answer; try again")

    async def _fenced(self, assumed: PodFacts) -> StoredPod | None:
        """Fences the pod, with retries until an answer arrives or another replica leads; the cards stay assumed."""
        pause = 0.1
        while True:
            if not self.rules.may_decide():
                self.state.forget(assumed.uid)
                raise NotLeading
            try:
                answer = await self.calls.patch(pod_path(assumed), fence_patch(assumed.uid, self.next_fence()))
            except NoAnswerError:
                answer = None
            if answer is not None and answer.status == HTTPStatus.OK:
                return _POD.decode(answer.body)
            if answer is not None and answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                return await self._fetch(assumed.namespace, assumed.name)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 5.0)

    def next_fence(self) -> str:
        """Returns a new fence each time, because a patch without a change keeps the version of the pod."""
        return f"{self.rules.term()}-{next(self._fences)}"

    # --- reading ----------------------------------------------------------------------------------------------------

    async def _read(self, call: BindCall) -> PodFacts:
        """Reads the stored pod, because our watch may be later than the scheduler's."""
        found = await self._fetch(call.pod_namespace, call.pod_name)
        if found is None or found.meta.uid != call.pod_uid:
            raise NotBound(f"pod {call.pod_namespace}/{call.pod_name} with uid {call.pod_uid[:64]} is gone")
        self.state.put_pod(found)
        return self.state.pod(call.pod_uid) or self._without_cards(found)

    def _without_cards(self, pod: StoredPod) -> PodFacts:
        """Returns a pod that the state does not keep: one that requests 0 of a GPU resource may go to any node."""
        facts = read_facts(pod, self.rules.dialects)
        if facts.is_over or facts.asks_for_cards:
            raise NotBound(f"pod {facts.title} has ended")
        return facts

    async def _fetch(self, namespace: str, name: str) -> StoredPod | None:
        answer = await self._answer(self.calls.get(path_of_pod(namespace, name)))
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        if answer.status != HTTPStatus.OK:
            raise NotBound(f"pod {namespace}/{name} cannot be read: {_quoted(answer)}")
        return _POD.decode(answer.body)

    async def _answer(self, request: Awaitable[Answer]) -> Answer:
        try:
            return await request
        except NoAnswerError as error:
            raise NotBound(f"the API server cannot be reached: {error}") from None


def _no_room(room: Room, demand: Demand) -> str:
    """Returns why the demand does not fit; empty where it fits."""
    return "" if fits(room, demand) else text(why_not(room, demand), demand)


def _refused(assumed: PodFacts, answer: Answer) -> NotBound:
    return NotBound(f"binding pod {assumed.title} was refused: {_quoted(answer)}")


def _quoted(answer: Answer) -> str:
    return printable(answer.refusal(), _QUOTED_CHARS)
