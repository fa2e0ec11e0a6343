from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.policies.usable import Usable
from extender.packing.workload_mix import PodClass, WorkloadMix

from .rooms import mixes


def fits(kind: PodClass, amounts: list[int], cpu_milli: int, memory_mib: int) -> float:
    if kind.cards == 1:
        slots = sum(amount // kind.share for amount in amounts)
    else:
        slots = len([amount for amount in amounts if amount >= kind.share]) // kind.cards
    limits = [have / each for have, each in ((cpu_milli, kind.cpu_milli), (memory_mib, kind.memory_mib)) if each]
    times = min([slots, *limits])
    return times if times >= 1 else 0


@given(
    mixes,
    st.lists(st.integers(0, 100), max_size=16),
    st.integers(0, 96_000),
    st.integers(0, 400_000),
)
def test_the_usable_amount_is_the_mean_over_all_classes(
    mix: WorkloadMix, amounts: list[int], cpu_milli: int, memory_mib: int
) -> None:
    kinds = [(kind, count) for kind, count in mix.kinds if kind.cards]
    by_hand = sum(count * kind.load * fits(kind, amounts, cpu_milli, memory_mib) for kind, count in kinds)
    assert Usable(kinds).of(amounts, cpu_milli, memory_mib) == pytest.approx(by_hand)
