"""Reports, or evicts, the victims for pods that find no card: kube-scheduler does not preempt for cards.

It asks for victims only where its own counts are short, and 30 + 30 free per cent satisfy them. So the extender reports
which pods block; and where the installation is configured so, it evicts them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec

from halfcard import names
from halfcard.events import event, once
from halfcard.placing.pod_facts import PodFacts
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

from ..bind.pod_requests import path_of_pod
from ..explain.pending import NodeEvictions, fewest_evictions
from ..quota_limits import LimitsOf
from ..state import State

_MOST_WAITING: Final = 256
_EVERY_S: Final = 1.0
_AGAIN_AFTER_S: Final = 120.0
_MOST_NAMED: Final = 5
_REASON: Final = "CardsHeldByLowerPriority"


@dataclass(slots=True)
class PreemptionAdvice:
    """Advises for one pod a second at most, because finding victims reads many nodes.

    Attributes:
        evicts: whether the victims are evicted; disruption budgets are respected.
        may_act: whether this replica leads; other replicas do nothing.
        limits_of: the quota limits of a pod: no victims on a node that a quota closes.
    """

    state: State
    calls: ApiCalls
    log: Log
    may_act: Callable[[], bool]
    now: Callable[[], datetime]
    evicts: bool
    limits_of: LimitsOf
    _waiting: OrderedDict[str, tuple[PodFacts, Sequence[str]]] = field(default_factory=OrderedDict)
    _advised_at: OrderedDict[str, float] = field(default_factory=OrderedDict)
    _has_pods: asyncio.Event = field(default_factory=asyncio.Event)

    def enqueue(self, facts: PodFacts, nodes: Sequence[str]) -> None:
        """Records a pod that fits on none of these nodes, which are all it may run on."""
        if facts.preempts and len(self._waiting) < _MOST_WAITING and not self._was_advised_recently(facts.uid):
            self._waiting[facts.uid] = facts, nodes
            self._has_pods.set()

    def _was_advised_recently(self, uid: str) -> bool:
        told = self._advised_at.get(uid)
        return told is not None and self.now().timestamp() - told < _AGAIN_AFTER_S

    async def run(self) -> None:
        while True:
            await self._has_pods.wait()
            _, (facts, nodes) = self._waiting.popitem(last=False)
            if not self._waiting:
                self._has_pods.clear()
            if self.may_act() and self._still_waits(facts.uid):
                await self._advise(facts, nodes)
                await asyncio.sleep(_EVERY_S)

    def _still_waits(self, uid: str) -> bool:
        """Hundreds may have come and gone since; they take no turn."""
        known = self.state.pod(uid)
        return known is not None and not known.node

    async def _advise(self, facts: PodFacts, nodes: Sequence[str]) -> None:
        self._note(facts.uid)
        departure = fewest_evictions(self.state, facts, nodes, self.limits_of(facts))
        known = self.state.pod(facts.uid)
        if departure is None or known is None or known.node:
            return
        try:
            await self._write_event(facts, departure)
            if self.evicts:
                await self._evict(facts, departure)
        except NoAnswerError as error:
            self.log.warning("preemption advice failed", pod=facts.title, why=str(error))

    def _note(self, uid: str) -> None:
        self._advised_at[uid] = self.now().timestamp()
        if len(self._advised_at) > 2 * _MOST_WAITING:
            self._advised_at.popitem(last=False)

    async def _write_event(self, facts: PodFacts, departure: NodeEvictions) -> None:
        answer = await self.calls.post(
            f"/api/v1/namespaces/{quote(facts.namespace, safe='')}/events",
            _event(facts, sentence(departure, evicts=self.evicts), self.now()),
        )
        if answer.status != HTTPStatus.CREATED:
            self.log.warning("preemption advice failed", pod=facts.title, why=f"{answer.status} {answer.message()}")

    async def _evict(self, facts: PodFacts, departure: NodeEvictions) -> None:
        """The API server keeps disruption budgets; a victim that may not go stays, and so do we without its card."""
        for victim in departure.pods:
            namespace, _, name = victim.pod.partition("/")
            answer = await self.calls.post(
                f"{path_of_pod(namespace, name)}/eviction",
                msgspec.json.encode({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}),
            )
            if answer.status not in (HTTPStatus.CREATED, HTTPStatus.NOT_FOUND):
                why = f"{answer.status} {answer.message()}"
                self.log.warning("not evicted", pod=victim.pod, for_pod=facts.title, node=departure.node, why=why)
                return
            self.log.event("evicted", pod=victim.pod, for_pod=facts.title, node=departure.node)


def sentence(departure: NodeEvictions, *, evicts: bool) -> str:
    """Words the Event."""
    named = [f"{each.pod} (priority {each.priority})" for each in departure.pods[:_MOST_NAMED]]
    more = len(departure.pods) - len(named)
    who = ", ".join(named) + (f" and {more} more" if more else "")
    what = "they are evicted" if evicts else "kube-scheduler does not preempt for cards: end them, or lower the request"
    return f"node {departure.node} could take the pod without {who}; {what}"


def _event(facts: PodFacts, message: str, now: datetime) -> bytes:
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": facts.namespace, "name": facts.name, "uid": facts.uid}
    name = {"generateName": f"{facts.name[:200]}."}
    return event(about, name, {"component": names.EXTENDER_SERVICE}, once(_REASON, message, now))
