"""Nodes, rooms and demands for tests: builders for examples, and strategies for laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from halfcard import names
from halfcard.cards import Card, Node
from halfcard.claims import Claim, ContainerStage, Need
from halfcard.dialects import Dialects
from halfcard.placing.card_usage import take, untouched, use_of
from halfcard.placing.demand import Demand, needs_of
from halfcard.placing.node_usage import Bound
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.placing.records import PlacedPod, RecordWriter, read, write
from halfcard.placing.room import Room, empty_room
from halfcard.pod.card_preferences import NOTHING_WANTED, CardPreferences
from halfcard.pod.requests import read_pod
from halfcard.pod.stored_pod import StoredPod
from tests.builders import WORDS, PodBuilder, pod

DIALECTS: Final = Dialects()
CARD_MIB: Final = 22016
"""86 units, as in Tuya's example."""

# --- by hand ----------------------------------------------------------------------------------------------------------


def node(cards: int = 4, memory_mib: int | None = CARD_MIB, *, slices: str = "", replicas: int = 1) -> Node:
    found = [Card(at, "A10", memory_mib, f"GPU-{at}", replicas=replicas) for at in range(cards)]
    return Node("n1", tuple(found), slices, cpu_milli=64000, memory_mib=256 * 1024)


def demand_of(asking: PodBuilder, wanted: CardPreferences = NOTHING_WANTED) -> Demand:
    _, needs = needs_of(read_pod(asking.read, DIALECTS))
    return Demand(needs, wanted)


def demand(**words: Any) -> Demand:
    return demand_of(pod().asks(**words))


def stored(asking: PodBuilder, uid: str = "u", node_name: str = "n1", annotations: Mapping[str, str] = {}) -> StoredPod:
    built = asking.on(node_name).annotated(annotations)
    return built.created(uid=uid, creationTimestamp=f"2024-01-01T00:00:00Z{uid}").stored


def facts(asking: PodBuilder, uid: str = "u", annotations: Mapping[str, str] = {}) -> PodFacts:
    return read_facts(stored(asking, uid, annotations=annotations), DIALECTS)


def room(
    cards: int = 4, memory_mib: int | None = CARD_MIB, *pods: tuple[int, dict[str, Any]], **node_words: Any
) -> Room:
    """A room with these uses on these cards."""
    found = empty_room(node(cards, memory_mib, **node_words))
    for at, words in pods:
        (need,) = demand(**words).needs
        found = used(found, at, need.claim)
    return found


def used(found: Room, at: int, claim: Claim) -> Room:
    left = take(found.cards[at], found.left[at], use_of(claim, found.cards[at], found.slices))
    assert left is not None, "the example itself does not fit"
    return found.after((*found.left[:at], left, *found.left[at + 1 :]))


def bound(asked: Demand, layout: tuple[tuple[int, ...], ...], where: Node, uid: str = "u") -> Bound:
    """A pod whose record was written as a Binding carries it, and read back."""
    containers = tuple(f"c{number}" for number in range(len(asked.needs)))
    annotations = write(PlacedPod(where, containers, asked.needs, layout), 1, DIALECTS, by=RecordWriter.EXTENDER)
    named = read(annotations, where.name, containers, asked.needs)
    return Bound(f"2024-01-01T00:00:00Z{uid}", uid, f"team/{uid}", asked, named)


def unrecorded(asked: Demand, uid: str = "u") -> Bound:
    return Bound(f"2024-01-01T00:00:00Z{uid}", uid, f"team/{uid}", asked, None)


# --- at random --------------------------------------------------------------------------------------------------------


class Written(NamedTuple):
    """A container's request by resource, its claim, and the device ids that kubelet allocates for it."""

    amounts: tuple[tuple[str, int], ...]
    claim: Claim
    ids: tuple[tuple[str, int], ...]


def _written(**words: int) -> Written:
    (need,) = demand(**words).needs
    return Written(tuple((WORDS[word], amount) for word, amount in words.items()), need.claim, need.ids)


CORES: Final = st.sampled_from([10, 40, 50, 60, 99])
UNITS: Final = st.sampled_from([1, 8, 16, 20, 32, 33])
FEW: Final = st.integers(1, 3)

WRITTEN: Final[st.SearchStrategy[Written]] = st.one_of(
    st.builds(lambda core, memory: _written(core=core, memory=memory), CORES, UNITS),
    st.builds(lambda cards: _written(core=100 * cards), FEW),
    st.builds(lambda memory: _written(tuya_memory=memory), UNITS),
    st.builds(lambda halves: _written(sgpu=halves), FEW),
    st.builds(lambda memory: _written(gpu_mem=memory), st.sampled_from([1, 4, 8, 9])),
    st.builds(lambda cards: _written(gpu_number=cards), FEW),
    st.builds(lambda cards: _written(gpu=cards), FEW),
    st.builds(lambda slices: _written(gpu_shared=slices), FEW),
)
"""HAMi's names without NVIDIA's, which are those of another cluster."""

HAMI: Final[st.SearchStrategy[Written]] = st.one_of(
    st.builds(
        lambda gpu, cores, gpumem: _written(gpu=gpu, gpucores=cores, gpumem=gpumem),
        FEW,
        CORES,
        st.sampled_from([1000, 4096]),
    ),
    st.builds(lambda gpu, part: _written(gpu=gpu, gpumem_percentage=part), FEW, st.sampled_from([30, 50])),
    st.builds(lambda gpu, cores: _written(gpu=gpu, gpucores=cores), FEW, st.sampled_from([40, 100])),
)

CARDS: Final = st.builds(
    lambda model, memory_mib, replicas, why_not, not_held: Card(
        0, model, memory_mib, replicas=replicas, why_not=why_not, not_held=not_held
    ),
    st.sampled_from(["A10", "T4"]),
    st.sampled_from([8192, 8192, 4096, None]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["", "", "", "", "cordoned"]),
    st.sampled_from(["", "", "", "", "no libcuda"]),
)


@st.composite
def nodes(draw: st.DrawFn, most_cards: int = 3) -> Node:
    found = draw(st.lists(CARDS, min_size=1, max_size=most_cards))
    numbered = tuple(replace(card, index=2 * at, uuid=f"GPU-{at}" if at % 2 else "") for at, card in enumerate(found))
    return Node("n1", numbered, draw(st.sampled_from(["", "", names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED])))


@st.composite
def rooms(draw: st.DrawFn, most_cards: int = 3) -> Room:
    """The rooms of a node that has other pods."""
    found = empty_room(draw(nodes(most_cards)))
    for at, card in enumerate(found.cards):
        left = untouched(card)
        for written in draw(st.lists(st.one_of(WRITTEN, HAMI), max_size=2)):
            left = take(card, left, use_of(written.claim, card, found.slices)) or left
        found = found.after((*found.left[:at], left, *found.left[at + 1 :]))
    return found


class Asking(NamedTuple):
    """A pod's demand, and the devices that each of its needs requests from kubelet."""

    demand: Demand
    written: tuple[Written, ...]


WANTED: Final = st.sampled_from(
    [NOTHING_WANTED] * 4
    + [CardPreferences(models=("t4",)), CardPreferences(not_models=("t4",)), CardPreferences(uuids=("GPU-1",))]
)


@st.composite
def askings(draw: st.DrawFn, most: int = 2, least: int = 1) -> Asking:
    words = draw(st.sampled_from([WRITTEN, WRITTEN, HAMI]))
    one = draw(words)
    alike = st.just(one) | words  # containers of a pod often ask for the same
    found = [
        (draw(st.sampled_from(ContainerStage)), written)
        for written in draw(st.lists(alike, min_size=least, max_size=most))
    ]
    apps = [written for stage, written in found if stage is ContainerStage.APP]
    init = [(stage, written) for stage, written in found if stage is not ContainerStage.APP]
    needs = [
        (Need(ContainerStage.APP, number, written.claim, written.ids), written) for number, written in enumerate(apps)
    ]
    needs += [(Need(stage, order, written.claim, written.ids), written) for order, (stage, written) in enumerate(init)]
    needs.sort(key=lambda item: item[0].stage is ContainerStage.INIT)
    return Asking(Demand(tuple(need for need, _ in needs), draw(WANTED)), tuple(written for _, written in needs))


demands: Final = askings(most=3).map(lambda asking: asking.demand)
