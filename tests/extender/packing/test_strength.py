"""The strength of cards: the order in which shares use up models."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.strength import strength

WEAK_TO_STRONG: Final = (
    ("Tesla K80", 11441),
    ("NVIDIA A2", 15356),
    ("Tesla P100-PCIE-16GB", 16280),
    ("Tesla T4", 15360),
    ("NVIDIA GeForce RTX 2080 Ti", 11264),
    ("Tesla V100-SXM2-16GB", 16384),
    ("NVIDIA L4", 23034),
    ("NVIDIA A10", 23028),
    ("NVIDIA GeForce RTX 3090", 24576),
    ("Tesla V100-SXM2-32GB", 32768),
    ("NVIDIA A40", 46068),
    ("NVIDIA GeForce RTX 4090", 24564),
    ("NVIDIA A100-SXM4-40GB", 40960),
    ("NVIDIA H20", 97871),
    ("NVIDIA L40S", 46068),
    ("NVIDIA A100-SXM4-80GB", 81920),
    ("NVIDIA H100 80GB HBM3", 81559),
    ("NVIDIA H200", 143771),
    ("NVIDIA B200", 183359),
)
SPELLINGS: Final = {
    "NVIDIA-GeForce-RTX-2080-Ti": "2080",
    "RTX3090": "3090",
    "V100M32": "v100",
    "NVIDIA-A100-PCIE-40GB": "a100",
    "NVIDIA A10G": "a10",
    "NVIDIA-L40S": "l40s",
}
UNKNOWN: Final = ("", "G2", "NVIDIA A1000", "Radeon", "XT4", "NVIDIA RTX 80800", "GB 16384")


@pytest.mark.parametrize(("weak", "strong"), list(pairwise(WEAK_TO_STRONG)), ids=lambda card: card[0])
def test_models_have_an_order(weak: tuple[str, int], strong: tuple[str, int]) -> None:
    assert strength(*weak) < strength(*strong)


@pytest.mark.parametrize("model", SPELLINGS)
def test_every_spelling_of_a_model_is_known(model: str) -> None:
    assert strength(model, 20480) == strength(SPELLINGS[model], 20480) != strength("", 20480)


@pytest.mark.parametrize("model", UNKNOWN)
def test_an_unknown_model_is_ranked_by_its_memory(model: str) -> None:
    found = [strength(model, gib * 1024) for gib in (8, 16, 24, 80)]
    assert found == sorted(set(found)) == [strength("", gib * 1024) for gib in (8, 16, 24, 80)]


def test_a_card_of_unknown_memory_is_usual() -> None:
    assert strength("", 0) == strength("", 16384)
    assert strength("A100", 0) == strength("A100", 16384)


def test_twice_the_memory_is_one_more() -> None:
    assert strength("A100", 81920) == pytest.approx(strength("A100", 40960) + 1)


def test_the_settings_decide_by_their_longest_name() -> None:
    own = (("a100", 3.0), ("a100-pcie", 9.0), ("g2", 1.0))
    assert strength("NVIDIA-A100-PCIE-40GB", 40960, own) == 9.0
    assert strength("NVIDIA-A100-SXM4-40GB", 40960, own) == 3.0
    assert strength("G2", 16384, own) == 1.0
    assert strength("Tesla T4", 15360, own) == strength("Tesla T4", 15360)


@given(st.text(max_size=20), st.integers(0, 2**20))
def test_no_model_is_weaker_than_the_scale(model: str, card_mib: int) -> None:
    assert strength(model, card_mib) >= 0
