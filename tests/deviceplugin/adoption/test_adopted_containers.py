"""The cards that another device plugin gave to running pods, as far as device ids and records show them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from deviceplugin.adoption.adopted_containers import find_adopted
from deviceplugin.kubelet.messages import CheckpointEntry
from halfcard import names
from halfcard.cards import Node
from tests.builders import PodBuilder, pod
from tests.halfcard.placing.examples import facts, node

GPU: Final = names.NVIDIA_GPU
SLICED: Final = node(2, slices=GPU, replicas=4)
Ids = dict[str, list[str]]


def gave(asking: PodBuilder, ids: Ids, where: Node, annotations: dict[str, str] | None = None) -> tuple[Any, list[str]]:
    """Returns the layout that the ids of each container show, and the pods with unknown cards."""
    pods = {"u": facts(asking, "u", annotations or {})}
    resource = next(iter(pods["u"].asks))
    given = [CheckpointEntry("u", container, resource, frozenset(each)) for container, each in ids.items()]
    found = find_adopted(given, pods, where)
    return next((layout for _, layout in found.named), None), [each.title for each in found.unknown]


NAMED: Final[dict[str, tuple[PodBuilder, Ids, Node, Any]]] = {
    "whole cards": (pod().asks(gpu=2), {"containers-0": ["GPU-3", "GPU-1"]}, node(4), ((1, 3),)),
    "slices, two of one card": (
        pod().asks(gpu=3),
        {"containers-0": ["GPU-1::0", "GPU-0::2", "GPU-1::3"]},
        SLICED,
        ((0, 1, 1),),
    ),
    "each container": (
        pod().asks(gpu=1).asks(gpu=1),
        {"containers-0": ["GPU-2"], "containers-1": ["GPU-0"]},
        node(4),
        ((2,), (0,)),
    ),
    "slices of a name of their own": (
        pod().asks(gpu_shared=1),
        {"containers-0": ["GPU-1::7"]},
        node(2, slices=names.NVIDIA_GPU_SHARED, replicas=8),
        ((1,),),
    ),
}


@pytest.mark.parametrize(("asking", "ids", "where", "layout"), NAMED.values(), ids=NAMED)
def test_nvidias_ids_name_the_cards(asking: PodBuilder, ids: Ids, where: Node, layout: Any) -> None:
    assert gave(asking, ids, where) == (layout, [])


UNKNOWN: Final[dict[str, tuple[PodBuilder, Ids, dict[str, str]]]] = {
    "HAMi's ids are counts": (pod().asks(gpu=1, gpumem=3000), {"containers-0": ["GPU-1-7"]}, {}),
    "a share of memory lies where the scheduler said": (pod().asks(gpu_mem=3), {"containers-0": ["GPU-1-_-0"]}, {}),
    "a card that is not there": (pod().asks(gpu=1), {"containers-0": ["GPU-9"]}, {}),
    "an instance of a card": (pod().asks(gpu=1), {"containers-0": ["MIG-1"]}, {}),
    "one container of two": (pod().asks(gpu=1).asks(gpu=1), {"containers-0": ["GPU-1"]}, {}),
    "slices of one card for whole cards": (pod().asks(gpu=2), {"containers-0": ["GPU-1::0", "GPU-1::1"]}, {}),
    "a record that names a card which is not there": (
        pod().asks(gpu_mem=3),
        {"containers-0": ["GPU-1-_-0"]},
        {names.ALIYUN_INDEX: "7"},
    ),
}


@pytest.mark.parametrize(("asking", "ids", "annotations"), UNKNOWN.values(), ids=UNKNOWN)
def test_pods_without_ids_or_record_have_unknown_cards(
    asking: PodBuilder, ids: Ids, annotations: dict[str, str]
) -> None:
    assert gave(asking, ids, node(4), annotations) == (None, ["team/p"])


def test_a_record_of_another_system_is_enough() -> None:
    assert gave(pod().asks(gpu_mem=3), {"containers-0": ["GPU-1-_-0"]}, node(4), {names.ALIYUN_INDEX: "2"}) == (
        None,
        [],
    )


def test_device_ids_do_not_overwrite_a_record() -> None:
    record = {names.PLACEMENT: '{"node":"n1","cards":{"containers-0":["GPU-2"]}}'}
    assert gave(pod().asks(gpu=1), {"containers-0": ["GPU-1"]}, node(4), record) == (None, [])


def test_on_a_node_with_one_card_every_pod_has_a_known_card() -> None:
    assert gave(pod().asks(gpu_mem=3), {"containers-0": ["GPU-0-_-0"]}, node(1)) == (None, [])


def test_our_own_ids_and_other_resources_are_not_adopted() -> None:
    pods = {"u": facts(pod().asks(gpu=1), "u")}
    ours = CheckpointEntry("u", "containers-0", GPU, frozenset({"hc-0"}))
    nic = CheckpointEntry("u", "containers-0", "example.com/nic", frozenset({"eth1"}))
    over = CheckpointEntry("gone", "containers-0", GPU, frozenset({"GPU-1"}))
    assert not any(find_adopted([ours, nic, over], pods, node(4)))


def test_the_problem_names_the_pods_and_what_to_do() -> None:
    pods = {"u": facts(pod("b").asks(gpu_mem=3), "u"), "v": facts(pod("a").asks(gpu_mem=3), "v")}
    given = [CheckpointEntry(uid, "containers-0", names.ALIYUN_GPU_MEM, frozenset({"x"})) for uid in pods]
    assert find_adopted(given, pods, node(2)).problem == (
        "pods of this node (team/a, team/b) have cards from another device plugin, and no record names them: no more "
        "is offered until these pods have ended; drain the node, or delete them"
    )
