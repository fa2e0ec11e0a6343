"""Reports or evicts the pods of lower priority that block an unschedulable pod.

kube-scheduler preempts only where its own counts are too small, and two cards with 30 % free each satisfy a count of
60 %. So the extender names the blocking pods in an Event, and evicts them where the installation is configured so.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Final

from halfcard import names
from halfcard.api_paths import path_of_events, path_of_pod
from halfcard.events import event, once
from halfcard.placing.pod_facts import PodFacts
from kube.api.calls import ApiCalls, NoAnswerError
from serving.log import Log

from ..bind.pod_requests import eviction
from ..explain.pending import NodeEvictions, fewest_evictions
from ..quota_limits import LimitsOf
from ..state import State

_MAX_WAITING: Final = 256
_EVERY_S: Final = 1.0
_AGAIN_AFTER_S: Final = 120.0
_MAX_NAMED: Final = 5
_REASON: Final = "CardsHeldByLowerPriority"


@dataclass(slots=True)
class PreemptionAdvice:
    """Handles at most one pod a second, because the search for victims reads many nodes.

    Attributes:
        evicts: whether the victims are evicted; disruption budgets are respected.
        may_act: returns whether this replica leads; other replicas do nothing.
        limits_of: returns the quota limits of a pod; a node that a quota closes has no victims.
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
        """Adds a pod that fits on none of these nodes; other checks exclude all other nodes."""
        if facts.preempts and len(self._waiting) < _MAX_WAITING and not self._was_advised_recently(facts.uid):
            self._waiting[facts.uid] = facts, nodes
            self._has_pods.set()

    def _was_advised_recently(self, uid: str) -> bool:
        advised_at = self._advised_at.get(uid)
        return advised_at is not None and self.now().timestamp() - advised_at < _AGAIN_AFTER_S

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
        """Returns whether the pod still has no node: hundreds may have ended since they were added."""
        known = self.state.pod(uid)
        return known is not None and not known.node

    async def _advise(self, facts: PodFacts, nodes: Sequence[str]) -> None:
        self._note(facts.uid)
        evictions = fewest_evictions(self.state, facts, nodes, self.limits_of(facts))
        known = self.state.pod(facts.uid)
        if evictions is None or known is None or known.node:
            return
        try:
            await self._write_event(facts, evictions)
            if self.evicts:
                await self._evict(facts, evictions)
        except NoAnswerError as error:
            self.log.warning("preemption advice failed", pod=facts.title, why=str(error))

    def _note(self, uid: str) -> None:
        self._advised_at[uid] = self.now().timestamp()
        if len(self._advised_at) > 2 * _MAX_WAITING:
            self._advised_at.popitem(last=False)

    async def _write_event(self, facts: PodFacts, evictions: NodeEvictions) -> None:
        answer = await self.calls.post(
            path_of_events(facts.namespace),
            _event(facts, sentence(evictions, facts.namespace, evicts=self.evicts), self.now()),
        )
        if answer.status != HTTPStatus.CREATED:
            self.log.warning("preemption advice failed", pod=facts.title, why=answer.refusal())

    async def _evict(self, facts: PodFacts, evictions: NodeEvictions) -> None:
        """Evicts the victims; stops where the API server refuses one (a disruption budget), because all are needed."""
        for victim in evictions.pods:
            namespace, _, name = victim.pod.partition("/")
            answer = await self.calls.post(
                f"{path_of_pod(namespace, name)}/eviction",
                eviction(name, {}),
            )
            if answer.status not in (HTTPStatus.CREATED, HTTPStatus.NOT_FOUND):
                why = answer.refusal()
                self.log.warning("not evicted", pod=victim.pod, for_pod=facts.title, node=evictions.node, why=why)
                return
            self.log.event("evicted", pod=victim.pod, for_pod=facts.title, node=evictions.node)


def sentence(evictions: NodeEvictions, namespace: str, *, evicts: bool) -> str:
    """Returns the message of the Event; those who may read it may not read the pods of other namespaces."""
    own = [each for each in evictions.pods if each.pod.startswith(f"{namespace}/")]
    others = len(evictions.pods) - len(own)
    named = [f"{each.pod} (priority {each.priority})" for each in own[:_MAX_NAMED]]
    more = [f"{len(own) - _MAX_NAMED} more"] if len(own) > _MAX_NAMED else []
    foreign = [f"{others} pod{'' if others == 1 else 's'} of other namespaces"] if others else []
    pods = ", ".join([*named, *more, *foreign])
    what = (
        "these pods are evicted"
        if evicts
        else "kube-scheduler does not preempt for cards; delete these pods or lower the request"
    )
    return f"the pod would fit on node {evictions.node} without {pods}; {what}"


def _event(facts: PodFacts, message: str, now: datetime) -> bytes:
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": facts.namespace, "name": facts.name, "uid": facts.uid}
    name = {"generateName": f"{facts.name[:200]}."}
    return event(about, name, {"component": names.EXTENDER_SERVICE}, once(_REASON, message, now))
