from __future__ import annotations

from typing import Final

import pytest

from extender.packing.policies.strength import strength

STRENGTHS: Final = {
    "Tesla T4": 0.0,
    "NVIDIA-T4": 0.0,
    "Tesla-P4": 0.0,
    "NVIDIA-L4": 0.0,
    "NVIDIA-L40S": 0.5,
    "Tesla-V100-SXM2-16GB": 0.5,
    "NVIDIA-A10": 0.5,
    "NVIDIA-A100-SXM4-80GB": 1.0,
    "NVIDIA-H100-80GB-HBM3": 1.0,
    "NVIDIA-GH200-480GB": 1.0,
    "G2": 0.5,
    "": 0.5,
}


@pytest.mark.parametrize("model", STRENGTHS)
def test_an_unknown_model_is_of_medium_strength(model: str) -> None:
    assert strength(model) == STRENGTHS[model]
