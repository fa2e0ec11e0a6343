"""Rates how strong a card is, because shares are placed on weak cards first: one more is twice as strong.

The strength is the logarithm of speed times memory. The speed of a known model stands for its generation; one that is
not known is as fast as usual for its memory, and in the settings any model can be given another strength.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import log2
from typing import Final

Strengths = tuple[tuple[str, float], ...]
"""The strengths of the settings, each with a part of the names of models, in lower case."""

_TFLOPS: Final = {
    "m4": 2,
    "m10": 2,
    "k80": 4,
    "m60": 5,
    "p4": 6,
    "m40": 7,
    "1080": 11,
    "p40": 12,
    "p100": 19,
    "a2": 18,
    "a16": 18,
    "t4": 65,
    "t10": 65,
    "2080": 108,
    "3080": 119,
    "3090": 142,
    "4090": 330,
    "5090": 419,
    "l20": 119,
    "l4": 121,
    "a10": 125,
    "v100": 125,
    "a40": 150,
    "a30": 165,
    "l40": 181,
    "l40s": 362,
    "h20": 148,
    "a100": 312,
    "a800": 312,
    "h100": 989,
    "h200": 989,
    "h800": 989,
    "gh200": 989,
    "b100": 1750,
    "b200": 2250,
    "b300": 2250,
    "gb200": 2500,
    "gb300": 2500,
    "mi250": 362,
    "mi300": 1307,
}
"""The speed of half-precision numbers by the data sheets, rounded; of models without them that of single precision."""

_TFLOPS_PER_GIB: Final = 5
_WEAKEST: Final = 6
"""The logarithm at which the scale begins, so that no usual card is below 0."""
_USUAL_GIB: Final = 16

_MODEL: Final = re.compile(rf"(?<![a-z0-9])(?:[gr]tx)?({'|'.join(sorted(_TFLOPS, key=len, reverse=True))})(?![0-9])")


@lru_cache(maxsize=1024)
def strength(model: str, card_mib: int, own: Strengths = ()) -> float:
    """Returns the strength that the longest fitting name of `own` gives, or else that of model and memory."""
    name = model.lower()
    if given := [(len(part), value) for part, value in own if part in name]:
        return max(given)[1]
    gib = card_mib / 1024 or _USUAL_GIB
    known = _MODEL.search(name)
    tflops = _TFLOPS[known[1]] if known else _TFLOPS_PER_GIB * gib
    return max(log2(tflops * gib) - _WEAKEST, 0.0)
