"""Gives the demonstration's pods their cards by the extender's own layouts, policy and records, in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from extender.explain.inspection import NodeInspection, inspect
from extender.packing.policy_cache import PolicyCache
from extender.packing.workload_stats import WorkloadStats
from extender.state import State
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.placing.layouts import best
from halfcard.placing.node_totals import offers
from halfcard.placing.pod_facts import read_facts
from halfcard.placing.records import PlacedPod, RecordWriter, write
from halfcard.pod.stored_pod import StoredPod

_POD: Final = msgspec.json.Decoder(StoredPod)


class Placement:
    """Gives pods cards of one node."""

    def __init__(self, node: Mapping[str, Any]) -> None:
        self._state = State(Dialects(), CapacityRules())
        self._state.put_node(node)
        (self._node,) = self._state.nodes().values()
        self._policies = PolicyCache("default", WorkloadStats().mix, self._state)

    def bind(self, stored: Mapping[str, Any]) -> Mapping[str, str]:
        """Places a pod; returns the annotations of its Binding, none if the pod requests no card or finds none."""
        metadata = {"uid": stored["metadata"]["name"], "annotations": {}, **stored["metadata"]}
        facts = read_facts(_decoded({**stored, "metadata": metadata}), self._state.dialects)
        room = self._state.room(self._node.name)
        policy = self._policies.policy(facts.demand.wanted.policy)
        laid = best(room, facts.demand, policy.value) if room and facts.demand.needs else None
        if laid is None:
            return {}
        placed = PlacedPod(self._node, facts.containers, facts.demand.needs, laid.layout)
        record = write(placed, time.time_ns(), self._state.dialects, by=RecordWriter.EXTENDER)
        bound = {**metadata, "annotations": metadata["annotations"] | record}
        self._state.put_pod(
            _decoded({**stored, "metadata": bound, "spec": {**stored["spec"], "nodeName": self._node.name}})
        )
        return record

    def inspect(self) -> NodeInspection:
        return inspect(self._state, self._node, offers(Dialects().known))


def _decoded(stored: Mapping[str, Any]) -> StoredPod:
    return _POD.decode(json.dumps(stored))
