"""Rooms and demands for the tests of policies, written as short as can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from extender.packing.placement import PackingPolicy, rank_of
from extender.packing.workload_mix import PodClass, WorkloadMix
from halfcard.cards import Card
from halfcard.claims import Claim, ContainerStage, Need, Part, whole_cards
from halfcard.placing.card_usage import CardMode, CardRoom
from halfcard.placing.demand import Demand
from halfcard.placing.room import Room
from halfcard.pod.card_preferences import NOTHING_WANTED, CardPreferences

CARD_MIB: Final = 16000
CORES: Final = 96_000
MEMORY: Final = 400_000


def room(*left: int | CardRoom, model: str = "X1", cpu_milli: int = CORES, memory_mib: int = MEMORY) -> Room:
    """Of each card the hundredths that are left; 100 is a free card."""
    cards = tuple([Card(index, model, CARD_MIB, replicas=4) for index in range(len(left))])
    return Room(cards, tuple([_left(each) for each in left]), "", cpu_milli, memory_mib)


def _left(left: int | CardRoom) -> CardRoom:
    if isinstance(left, CardRoom):
        return left
    if left == 100:
        return CardRoom(CardMode.FREE, 100, CARD_MIB, 0)
    return CardRoom(CardMode.SHARED, left, CARD_MIB, 0) if left else CardRoom(CardMode.EXCLUSIVE, 0, 0, 0)


def share(hundredths: int, cpu_milli: int = 0) -> Demand:
    return _demand(Claim(1, hundredths, 0, exclusive=False, distinct=False, dialect="tencent"), cpu_milli)


def whole(cards: int, cpu_milli: int = 0, models: tuple[str, ...] = ()) -> Demand:
    wanted = CardPreferences(models=models) if models else NOTHING_WANTED
    return _demand(whole_cards(cards, "tencent"), cpu_milli)._replace(wanted=wanted)


def half() -> Demand:
    return _demand(Claim(1, None, None, exclusive=False, distinct=True, dialect="tuya", memory_pct=50, part=Part.HALF))


def _demand(claim: Claim, cpu_milli: int = 0) -> Demand:
    return Demand((Need(ContainerStage.APP, 0, claim),), cpu_milli=cpu_milli)


def chosen(policy: PackingPolicy, rooms: Sequence[Room], demand: Demand) -> int:
    """The position of the node that takes the pod."""
    ranks = [rank_of(each, demand, policy) for each in rooms]
    return ranks.index(max(ranks))


kinds = st.builds(
    PodClass,
    cpu_milli=st.integers(0, 20).map(lambda cores: cores * 1000),
    memory_mib=st.integers(0, 10).map(lambda gib: gib * 8192),
    cards=st.integers(0, 4),
    share=st.integers(1, 100),
    models=st.sampled_from([(), (), ("x1",), ("y2",)]),
    card_mib=st.just(0),
).map(lambda kind: kind if kind.cards else kind._replace(share=0))

mixes = st.lists(st.tuples(kinds, st.integers(1, 50).map(float)), min_size=1, max_size=12).map(
    lambda items: WorkloadMix(tuple(dict(items).items()))
)

rooms = st.builds(
    lambda left, model, cores, gib: room(*left, model=model, cpu_milli=cores * 1000, memory_mib=gib * 8192),
    st.lists(st.integers(0, 100), min_size=1, max_size=8),
    st.sampled_from(["X1", "Y2"]),
    st.integers(-4, 96),
    st.integers(-4, 64),
)
