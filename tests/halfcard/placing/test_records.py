from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfcard import names
from halfcard.claims import ContainerStage
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import best
from halfcard.placing.records import (
    BY_AGENT,
    NOT_UNDERSTOOD,
    PlacedPod,
    RecordWriter,
    name_of,
    positions,
    read,
    recorder,
    write,
)
from halfcard.placing.room import Room, empty_room
from tests.builders import PodBuilder, pod

from .examples import DIALECTS, Asking, askings, demand_of, node, nodes

NODE: Final = node(4)
NOW: Final = 1700000000000000000


def placed(asking: PodBuilder, layout: tuple[tuple[int, ...], ...]) -> PlacedPod:
    needs = demand_of(asking).needs
    return PlacedPod(NODE, tuple(f"c{number}" for number in range(len(needs))), needs, layout)


def others(asking: PodBuilder, *layout: tuple[int, ...]) -> dict[str, str]:
    """The annotations that are written besides Halfcard's record."""
    written = write(placed(asking, layout), NOW, DIALECTS, by=RecordWriter.EXTENDER)
    del written[names.PLACEMENT]
    return written


SHARE: Final = pod().asks(core=30, memory=20)


def written_by(writer: RecordWriter) -> dict[str, str]:
    """Halfcard's record alone."""
    written = write(placed(SHARE, ((1,),)), NOW, DIALECTS, by=writer)
    return {names.PLACEMENT: written[names.PLACEMENT]}


def test_halfcards_record_names_the_cards_of_each_container() -> None:
    written = write(placed(pod().asks(gpu=2).init(gpu=1), ((0, 2), (1,))), NOW, DIALECTS, by=RecordWriter.EXTENDER)
    assert msgspec.json.decode(written[names.PLACEMENT]) == {
        "node": "n1",
        "cards": {"c0": ["GPU-0", "GPU-2"], "c1": ["GPU-1"]},
        "by": "extender",
    }


WRITERS: Final[dict[str, tuple[dict[str, str], str]]] = {
    "the extender": (written_by(RecordWriter.EXTENDER), "Halfcard's extender"),
    "the agent": (written_by(RecordWriter.AGENT), BY_AGENT),
    "a version that did not say": ({names.PLACEMENT: '{"node":"n1","cards":{"c0":["GPU-1"]}}'}, "Halfcard"),
    "a version to come": ({names.PLACEMENT: '{"node":"n1","cards":{"c0":["GPU-1"]},"by":"?"}'}, "Halfcard"),
    "gpu-manager": ({"tencent.com/predicate-gpu-idx-0": "1", "tencent.com/predicate-node": "n1"}, "gpu-manager"),
    "nobody: the record lacks a card": ({names.PLACEMENT: '{"node":"n1","cards":{},"by":"agent"}'}, ""),
}


@pytest.mark.parametrize(("annotations", "expected"), WRITERS.values(), ids=WRITERS)
def test_a_record_says_who_wrote_it(annotations: dict[str, str], expected: str) -> None:
    assert recorder(annotations, "n1", ("c0",), demand_of(SHARE).needs) == expected


PEERS: Final[dict[str, tuple[dict[str, str], dict[str, str]]]] = {
    "gpu-manager: indices by the number of the container, containers without a claim counted": (
        others(pod().asks(cpu=1).asks(core=30, memory=20).asks(core=200), (1,), (0, 3)),
        {
            "tencent.com/predicate-gpu-idx-1": "1",
            "tencent.com/predicate-gpu-idx-2": "0,3",
            "tencent.com/predicate-node": "n1",
            "tencent.com/predicate-time": str(NOW),
            "tencent.com/gpu-assigned": "false",
        },
    ),
    "gpu-manager under Tuya's name": (
        others(pod().asks(tuya_memory=20), (2,)),
        {
            "tuya.com/predicate-gpu-idx-0": "2",
            "tuya.com/predicate-node": "n1",
            "tuya.com/predicate-time": str(NOW),
            "tuya.com/gpu-assigned": "false",
        },
    ),
    "gpushare: one index, and the sum of the pod": (
        others(pod().asks(gpu_mem=3).asks(gpu_mem=4), (2,), (2,)),
        {
            "ALIYUN_COM_GPU_MEM_IDX": "2",
            "ALIYUN_COM_GPU_MEM_DEV": "21",
            "ALIYUN_COM_GPU_MEM_POD": "7",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(NOW),
        },
    ),
    "gpushare's agent knows one card a pod": (others(pod().asks(gpu_mem=3).asks(gpu_mem=4), (2,), (1,)), {}),
    "volcano: indices of the pod": (
        others(pod().asks(gpu_number=2), (1, 3)),
        {"volcano.sh/gpu-index": "1,3", "volcano.sh/predicate-time": str(NOW)},
    ),
    "no other system reads of init containers": (others(pod().asks().init(core=30, memory=20), (1,)), {}),
    "half cards have no record but ours": (others(pod().asks(sgpu=2), (0, 1)), {}),
}


@pytest.mark.parametrize(("written", "expected"), PEERS.values(), ids=PEERS)
def test_other_systems_agents_get_their_annotations(written: dict[str, str], expected: dict[str, str]) -> None:
    assert written == expected


THEIRS: Final[dict[str, tuple[PodBuilder, dict[str, str], Any]]] = {
    "gpu-manager's": (
        pod().asks(core=30, memory=20).asks(core=200),
        {
            "tencent.com/predicate-gpu-idx-0": "3",
            "tencent.com/predicate-gpu-idx-1": "0,1",
            "tencent.com/predicate-node": "n1",
        },
        (("3",), ("0", "1")),
    ),
    "gpu-manager's under a company's own domain": (
        pod().asks(core=30, memory=20),
        {"gpu.example.com/predicate-gpu-idx-0": "3", "gpu.example.com/predicate-node": "n1"},
        (("3",),),
    ),
    "gpu-manager's without the node does not count": (
        pod().asks(core=30, memory=20),
        {"tencent.com/predicate-gpu-idx-0": "3"},
        None,
    ),
    "gpu-manager's agent needs no scheduler to say what it gave": (
        pod().asks(core=30, memory=20),
        {"tencent.com/predicate-gpu-idx-0": "3", "tencent.com/gpu-assigned": "true"},
        (("3",),),
    ),
    "gpu-manager's agent before us: it chooses whole cards itself": (
        pod().asks(core=200),
        {
            "tencent.com/predicate-gpu-idx-0": "2,3",
            "tencent.com/predicate-node": "n1",
            "tencent.com/gpu-assigned": "true",
            names.PLACEMENT: '{"node":"n1","cards":{"c0":["GPU-0","GPU-1"]}}',
        },
        (("2", "3"),),
    ),
    "gpu-manager's agent, of another node, does not count": (
        pod().asks(core=30, memory=20),
        {
            "tencent.com/predicate-gpu-idx-0": "3",
            "tencent.com/predicate-node": "n2",
            "tencent.com/gpu-assigned": "true",
        },
        NOT_UNDERSTOOD,
    ),
    "volcano's agent says the same word, and names no cards by it": (
        pod().asks(gpu_number=1),
        {"volcano.sh/gpu-assigned": "true"},
        None,
    ),
    "gpu-manager's knows nothing of a claim of an init container": (
        pod().asks(core=30, memory=20).init(core=30, memory=20),
        {"tencent.com/predicate-gpu-idx-0": "3", "tencent.com/predicate-node": "n1"},
        None,
    ),
    "gpushare's": (
        pod().asks(gpu_mem=3).asks(gpu_mem=4),
        {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"},
        (("1",), ("1",)),
    ),
    "gpushare's says nothing of a container that speaks to another system": (
        pod().asks(gpu_mem=3).asks(core=30, memory=20),
        {"ALIYUN_COM_GPU_MEM_IDX": "1"},
        NOT_UNDERSTOOD,
    ),
    "volcano's": (pod().asks(gpu_number=2), {"volcano.sh/gpu-index": "1,3"}, (("1", "3"),)),
    "volcano's is that of its init containers, too": (
        pod().init(gpu_memory=2048).asks(gpu_memory=1024),
        {"volcano.sh/gpu-index": "1"},
        (("1",), ("1",)),
    ),
    "a fence alone is no record": (pod().asks(gpu=1), {names.FENCE: "x-1", names.CORE_LIMIT_DEFAULTED: "50"}, None),
    "ours before theirs": (
        pod().asks(core=30, memory=20),
        {
            "tencent.com/predicate-gpu-idx-0": "3",
            "tencent.com/predicate-node": "n1",
            names.PLACEMENT: '{"node":"n1","cards":{"c0":["GPU-2"]}}',
        },
        (("GPU-2",),),
    ),
    "theirs where ours is not whole": (
        pod().asks(core=30, memory=20),
        {
            "tencent.com/predicate-gpu-idx-0": "3",
            "tencent.com/predicate-node": "n1",
            names.PLACEMENT: '{"node":"n1","cards":{}}',
        },
        (("3",),),
    ),
    "half of a character": (pod().asks(gpu=1), {names.PLACEMENT: "\ud800"}, NOT_UNDERSTOOD),
    "nothing at all": (pod().asks(gpu=1), {}, None),
}


@pytest.mark.parametrize(("asking", "annotations", "expected"), THEIRS.values(), ids=THEIRS)
def test_a_record_is_read_in_every_systems_format(
    asking: PodBuilder, annotations: dict[str, str], expected: Any
) -> None:
    needs = demand_of(asking).needs
    assert read(annotations, "n1", tuple(f"c{number}" for number in range(len(needs))), needs) == expected


def test_cards_are_found_by_uuid_or_by_index() -> None:
    assert positions((("GPU-1", "3"), ("0",)), NODE) == ((1, 3), (0,))
    assert positions((("4",),), NODE) is None
    assert positions((("",),), NODE) is None


def any_card(_room: Room) -> float:
    return 0.0


@settings(max_examples=200)
@given(nodes(), askings(most=3))
def test_a_written_record_is_read_back_and_agrees_with_the_other_formats(where: Any, asking: Asking) -> None:
    laid = best(empty_room(where), asking.demand, any_card)
    if laid is None:
        return
    needs = asking.demand.needs
    containers = tuple(f"c{number}" for number in range(len(needs)))
    written = write(PlacedPod(where, containers, needs, laid.layout), NOW, DIALECTS, by=RecordWriter.EXTENDER)
    named = read(written, where.name, containers, needs)
    assert named == tuple(tuple(name_of(where.cards[at]) for at in cards) for cards in laid.layout)
    assert positions(named, where) == laid.layout
    del written[names.PLACEMENT]
    theirs = read(written, where.name, containers, needs)
    one_system = len({need.claim.dialect for need in needs}) == 1 and all(
        need.stage is ContainerStage.APP for need in needs
    )
    if theirs and one_system:
        assert positions(theirs, where) == laid.layout


KEYS: Final = st.sampled_from(
    [
        names.PLACEMENT,
        "tencent.com/predicate-node",
        "tencent.com/predicate-gpu-idx-0",
        "tuya.com/predicate-node",
        "/predicate-node",
        names.ALIYUN_INDEX,
        names.VOLCANO_INDEX,
    ]
)
PIECES: Final = st.sampled_from(
    ['{"node":"n1"', ',"cards":', '{"c0":', '["0"]', '["0","1"]', "}}", "n1", "0", "-1", ","]
)
TEXTS: Final = st.text() | st.lists(PIECES, max_size=6).map("".join)


@settings(max_examples=250)
@given(st.dictionaries(KEYS, TEXTS), askings(most=2).map(lambda asking: asking.demand))
def test_any_annotations_are_a_complete_record_or_none(annotations: dict[str, str], asked: Demand) -> None:
    named = read(annotations, "n1", ("c0", "c1")[: len(asked.needs)], asked.needs)
    if named:
        assert [len(cards) for cards in named] == [need.claim.cards for need in asked.needs]
