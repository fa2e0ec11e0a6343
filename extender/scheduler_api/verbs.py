"""Decides the read-only verbs: which nodes fit, how good each is, and which pods to evict.

Decisions only: a call and the state in, an answer out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from halfcard.cards import Node
from halfcard.cluster_view import read_node
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.placing.room import empty_room
from halfcard.pod.owned_annotations import forged
from halfcard.pod.stored_pod import StoredPod
from halfcard.problems import OWNED
from halfcard.quota.pod_location import recorded_place

from ..quota_limits import UNLIMITED, LimitsOf, QuotaLimits, narrowed, unlimited
from ..refused.preemption import Victims, extend_victims
from ..state import State
from . import wire
from .answer_cache import FITS, AnswerCache, FeasibleNodes

OnUnschedulable = Callable[[PodFacts, Sequence[str]], None]


def _ignore(_facts: PodFacts, _nodes: Sequence[str]) -> None:
    pass


class Unplaceable(Exception):
    """A pod that cannot be placed on any node; the text is a sentence for its events."""


def facts_of_call(state: State, question: wire.NodesCall) -> PodFacts:
    """Returns the facts of the pod of a call; a version that the watch has shown is not decoded again.

    Raises:
        Unplaceable: the facts are unknown, or the pod carries what would become a record.
    """
    meta = question.pod.meta
    facts = state.pod(meta.uid)
    if facts is None or facts.node or facts.version != meta.resource_version:
        facts = read_facts(question.pod, state.dialects)
    if facts.trouble:
        raise Unplaceable(facts.trouble)
    if facts.demand.needs:
        check_no_record(facts)
    return facts


def check_no_record(facts: PodFacts) -> None:
    """A Binding merges its annotations into the pod's: what is there already would look like ours."""
    if not facts.uid:
        raise Unplaceable('metadata.uid: got ""; a pod of the API server has one; send the pod as it is stored')
    for key in forged(facts.owned):
        where = f'metadata.annotations["{key}"]'
        raise Unplaceable(str(OWNED.broken(where, facts.owned[key], "delete the pod and create it without")))


def filter_nodes(
    state: State,
    answers: AnswerCache,
    question: wire.NodesCall,
    on_unschedulable: OnUnschedulable = _ignore,
    limits_of: LimitsOf = unlimited,
) -> bytes:
    """Returns all nodes that can take the pod, and the reason of each other node, the same text for the same reason.

    `on_unschedulable` is called with a pod that fits on none of the nodes.
    """
    facts = facts_of_call(state, question)
    if not facts.demand.needs:
        return wire.filter_answer(question, question.names, {})
    known = answers.feasible(facts.demand)
    told = known.among(question.names, known=question.known)
    if known.unknown in told and question.full is not None:
        _meet_strangers(state, known, question, told)
    feasible = told.pop(FITS, ())
    if feasible and (limits := limits_of(facts)) is not UNLIMITED:
        feasible = _within(limits, state, facts, feasible, told)
    if not feasible:
        on_unschedulable(facts, question.names)
    return wire.filter_answer(question, feasible, told)


def _within(
    limits: QuotaLimits, state: State, facts: PodFacts, names: Sequence[str], told: dict[str, Sequence[str]]
) -> Sequence[str]:
    """Removes the nodes that budgets close, with the reason."""
    by_reason: dict[str, list[str]] = {FITS: []}
    for name in names:
        why = limits.why_not(state.kind(name), facts.demand, partial(state.room, name))
        by_reason.setdefault(why, []).append(name)
    allowed = by_reason.pop(FITS)
    _tell_more(told, by_reason)
    return allowed


def _meet_strangers(
    state: State, known: FeasibleNodes, question: wire.NodesCall, told: dict[str, Sequence[str]]
) -> None:
    """A node that our watch has not shown yet, but that came in full, has no pods with cards yet."""
    bare = told.pop(known.unknown)
    strangers = {*bare} - state.nodes().keys()
    by_reason: dict[str, list[str]] = {known.unknown: [name for name in bare if name not in strangers]}
    for raw, name in zip(question.full or (), question.names, strict=True):
        if name in strangers:
            node = read_node(_as_mapping(raw), state.capacity_rules)
            reason = known.of(empty_room(node)) if isinstance(node, Node) else known.unknown
            by_reason.setdefault(reason, []).append(name)
    _tell_more(told, by_reason)


def _tell_more(told: dict[str, Sequence[str]], by_reason: Mapping[str, Sequence[str]]) -> None:
    """Adds reasons; sequences in the dict are shared and never modified."""
    for reason, names in by_reason.items():
        if names:
            told[reason] = [*told.get(reason, ()), *names]


def _as_mapping(raw: msgspec.Raw) -> dict[str, Any]:
    found = msgspec.json.decode(raw)
    return found if isinstance(found, dict) else {}


def prioritize_nodes(state: State, answers: AnswerCache, question: wire.NodesCall) -> bytes:
    """One node has 10, all others at most 9: the scheduler breaks ties at random, and packing is no game of chance."""
    facts = facts_of_call(state, question)
    names = question.names
    if not facts.demand.needs or not names:
        return wire.prioritize_answer(names, bytes(len(names)))
    return answers.ranked(facts.demand).told(names)


def preempt(
    state: State, pod: StoredPod, victims: dict[str, wire.MetaVictims], limits_of: LimitsOf = unlimited
) -> bytes:
    """The scheduler's victims, and where they free no card that the pod may have, the fewest more that do."""
    facts = read_facts(pod, state.dialects)
    if not facts.demand.needs or facts.trouble:
        return wire.preempt_answer(victims)
    limits = limits_of(facts)
    answer = {}
    for name, given in victims.items():
        wanted = _victims(state, limits, facts, name, frozenset(each.uid for each in given.pods or ()))
        if wanted is not None:
            answer[name] = wire.MetaVictims([wire.MetaPod(uid) for uid in sorted(wanted)], given.violations)
    return wire.preempt_answer(answer)


def _victims(state: State, limits: QuotaLimits, facts: PodFacts, name: str, given: Victims) -> Victims | None:
    """Returns the victims on a node; None where evicting would not help. A victim frees its charge for its own
    namespace.
    """
    node = state.nodes().get(name)
    if node is None:
        return None
    pods = state.pods_on(name)
    own = [each.bound() for each in pods if each.uid in given and each.namespace == facts.namespace]
    gone = [recorded_place(node, each.demand.needs, each.named) for each in own]
    closed = limits.without(gone).closed(state.kind(name))
    asking = replace(facts, demand=narrowed(facts.demand, closed)) if closed else facts
    return extend_victims(node, pods, given, asking)
