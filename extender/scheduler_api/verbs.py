"""Decides the read-only calls: which nodes fit, how good each is, and which pods to evict.

Pure functions of the call and the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from halfcard.cards import Node
from halfcard.cluster_view import read_node
from halfcard.placing.driver_demand import may_go_to_driver
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.placing.room import empty_room
from halfcard.pod.stored_pod import StoredPod
from halfcard.quota.pod_location import recorded_location

from ..closed_nodes import why_closed
from ..left_to_drivers import NOT_FOR_DRIVERS
from ..preemption import Victims, extend_victims
from ..quota_limits import UNLIMITED, LimitsOf, QuotaLimits, narrowed, unlimited
from ..state import State
from ..unplaceable import Unplaceable, check_no_record
from . import wire
from .answer_cache import FITS, AnswerCache, FeasibleNodes

OnUnschedulable = Callable[[PodFacts, Sequence[str]], None]


def _ignore(_facts: PodFacts, _nodes: Sequence[str]) -> None:
    pass


def facts_of_call(state: State, call: wire.NodesCall) -> PodFacts:
    """Returns the facts of the pod of a call; a version that the watch has shown is not decoded again.

    Raises:
        Unplaceable: a request of the pod cannot be read, or the pod carries annotations of a record.
    """
    meta = call.pod.meta
    facts = state.pod(meta.uid)
    if facts is None or facts.node or facts.version != meta.resource_version:
        facts = read_facts(call.pod, state.dialects)
    if facts.trouble:
        raise Unplaceable(facts.trouble)
    if facts.demand.needs:
        check_no_record(facts)
    return facts


def filter_nodes(
    state: State,
    answers: AnswerCache,
    call: wire.NodesCall,
    on_unschedulable: OnUnschedulable = _ignore,
    limits_of: LimitsOf = unlimited,
) -> bytes:
    """Returns all nodes that can take the pod and the reason of each other node; equal reasons have equal texts.

    `on_unschedulable` is called with a pod that fits on none of the nodes.
    """
    facts = facts_of_call(state, call)
    if not facts.demand.needs:
        return wire.filter_answer(call, call.names, {})
    cached = answers.feasible(facts.demand)
    refused = cached.by_reason(call.names, known=call.known)
    if cached.unknown_reason in refused and call.full is not None:
        _judge_unknown_nodes(state, cached, call, refused)
    if state.driver_nodes and cached.unknown_reason in refused:
        _leave_to_drivers(state, facts, cached.unknown_reason, refused)
    feasible = refused.pop(FITS, ())
    if feasible and (limits := limits_of(facts)) is not UNLIMITED:
        feasible = _apply_limits(limits, state, facts, feasible, refused)
    if not feasible:
        on_unschedulable(facts, call.names)
    return wire.filter_answer(call, feasible, refused)


def _apply_limits(
    limits: QuotaLimits, state: State, facts: PodFacts, names: Sequence[str], refused: dict[str, Sequence[str]]
) -> Sequence[str]:
    """Returns the nodes that no budget closes, and adds the others to `refused`."""
    by_reason: dict[str, list[str]] = {FITS: []}
    for name in names:
        why = why_closed(limits, state, name, facts.demand)
        by_reason.setdefault(why, []).append(name)
    allowed = by_reason.pop(FITS)
    _add_reasons(refused, by_reason)
    return allowed


def _judge_unknown_nodes(
    state: State, cached: FeasibleNodes, call: wire.NodesCall, refused: dict[str, Sequence[str]]
) -> None:
    """Judges nodes that the watch has not shown yet by their objects in the call: no pod with cards is there yet."""
    without_cards = refused.pop(cached.unknown_reason)
    unknown = {*without_cards} - state.nodes().keys()
    by_reason: dict[str, list[str]] = {cached.unknown_reason: [name for name in without_cards if name not in unknown]}
    for raw, name in zip(call.full or (), call.names, strict=True):
        if name in unknown:
            node = read_node(_as_mapping(raw), state.capacity_rules)
            reason = cached.reason_in(empty_room(node)) if isinstance(node, Node) else cached.unknown_reason
            by_reason.setdefault(reason, []).append(name)
    _add_reasons(refused, by_reason)


def _leave_to_drivers(state: State, facts: PodFacts, unknown: str, refused: dict[str, Sequence[str]]) -> None:
    """Lets nodes of drivers pass for whole cards: kube-scheduler found a device there before it called."""
    without_cards = refused.pop(unknown)
    theirs = [name for name in without_cards if state.driver(name)]
    others = [name for name in without_cards if not state.driver(name)]
    reason = FITS if may_go_to_driver(facts.demand) else NOT_FOR_DRIVERS
    _add_reasons(refused, {unknown: others, reason: theirs})


def _add_reasons(refused: dict[str, Sequence[str]], by_reason: Mapping[str, Sequence[str]]) -> None:
    """Adds names to `refused`, whose sequences are shared and never modified."""
    for reason, names in by_reason.items():
        if names:
            refused[reason] = [*refused.get(reason, ()), *names]


def _as_mapping(raw: msgspec.Raw) -> dict[str, Any]:
    found = msgspec.json.decode(raw)
    return found if isinstance(found, dict) else {}


def prioritize_nodes(state: State, answers: AnswerCache, call: wire.NodesCall) -> bytes:
    """Scores one node 10 and all others at most 9, because kube-scheduler breaks ties at random."""
    facts = facts_of_call(state, call)
    names = call.names
    if not facts.demand.needs or not names:
        return wire.prioritize_answer(names, bytes(len(names)))
    return answers.ranked(facts.demand).answer(names)


def preempt(
    state: State, pod: StoredPod, victims: dict[str, wire.MetaVictims], limits_of: LimitsOf = unlimited
) -> bytes:
    """Returns the victims of kube-scheduler, extended by the fewest pods that free a card which the pod may use."""
    facts = read_facts(pod, state.dialects)
    if not facts.demand.needs or facts.trouble:
        return wire.preempt_answer(victims)
    limits = limits_of(facts)
    answer = {}
    for name, proposed in victims.items():
        extended = _extended(state, limits, facts, name, frozenset(each.uid for each in proposed.pods or ()))
        if extended is not None:
            answer[name] = wire.MetaVictims([wire.MetaPod(uid) for uid in sorted(extended)], proposed.violations)
    return wire.preempt_answer(answer)


def _extended(state: State, limits: QuotaLimits, facts: PodFacts, name: str, proposed: Victims) -> Victims | None:
    """Returns the victims on a node; None where evictions do not help. A victim frees the charge of its namespace."""
    node = state.nodes().get(name)
    if node is None:
        return None
    if state.driver(name) and may_go_to_driver(facts.demand):
        return proposed
    pods = state.pods_on(name)
    own = [each.bound() for each in pods if each.uid in proposed and each.namespace == facts.namespace]
    gone = [recorded_location(node, each.demand.needs, each.named) for each in own]
    closed = limits.without(gone).closed(state.kind(name))
    asking = replace(facts, demand=narrowed(facts.demand, closed)) if closed else facts
    return extend_victims(node, pods, proposed, asking)
