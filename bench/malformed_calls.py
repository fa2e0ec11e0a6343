"""Calls that kube-scheduler sends to the extender, for a fuzzer to corrupt."""

from __future__ import annotations

import json
from typing import Any, Final

from halfcard import names

from . import extender_cluster as cluster
from .extender_cluster import Json, Size
from .malformed import Valid

SIZE: Final = Size(nodes=20, pods=80, full_nodes=4, pods_later=80)
"""Small: what is damaged is the question, not the cluster."""

_NODE_NAMES: Final = [cluster.node_name(number) for number in range(SIZE.nodes)] + ["unknown"]


def calls() -> Valid:
    """One of each verb, in each form in which it comes."""
    share = cluster.asking({names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 10}, containers=2)
    whole = cluster.asking({names.NVIDIA_GPU: 2, names.HAMI_GPUMEM: 3000})
    share["metadata"]["annotations"] = {names.ASK_POLICY: "spread", names.ASK_MODEL: "t4", names.FENCE: "x-1"}
    full = [cluster.full_node(number, kilobytes=2) for number in range(SIZE.full_nodes)]
    uid = share["metadata"]["uid"]
    meta = {name: {"Pods": [{"UID": uid}], "NumPDBViolations": 0} for name in _NODE_NAMES[:3]}
    bind = {"PodName": "train", "PodNamespace": "team-a", "PodUID": uid, "Node": _NODE_NAMES[0]}
    return (
        (names.FILTER_PATH, cluster.by_name(share, _NODE_NAMES)),
        (names.FILTER_PATH, cluster.in_full(whole, full)),
        (names.GPU_ADMISSION_FILTER_PATH, _body({"pod": whole, "nodenames": _NODE_NAMES})),
        (names.GPUSHARE_FILTER_PATH, cluster.by_name(whole, _NODE_NAMES)),
        (names.PRIORITIZE_PATH, cluster.by_name(share, _NODE_NAMES)),
        (names.PREEMPT_PATH, _body({"Pod": whole, "NodeNameToMetaVictims": meta})),
        (names.PREEMPT_PATH, _body({"Pod": share, "NodeNameToVictims": _whole_victims(share)})),
        (names.BIND_PATH, _body(bind)),
        (names.GPUSHARE_BIND_PATH, _body(bind)),
    )


def _whole_victims(pod: Json) -> Json:
    return {name: {"Pods": [pod], "NumPDBViolations": 1} for name in _NODE_NAMES[:2]}


def _body(question: Any) -> bytes:
    return json.dumps(question, separators=(",", ":")).encode()
