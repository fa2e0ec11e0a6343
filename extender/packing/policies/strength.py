"""Rates models of cards from 0, weak, to 1, strong: experiments and inference are placed on weak cards first."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WEAK, _MEDIUM, _STRONG = 0.0, 0.5, 1.0
_WEAK_MODELS: Final = "k80 m4 m10 m40 m60 p4 p40 t4 t10 a2 a16 l4"
_STRONG_MODELS: Final = "a100 a800 h20 h100 h200 h800 gh200 b100 b200 b300 gb200 gb300 mi250 mi300"
_KNOWN: Final = dict.fromkeys(_WEAK_MODELS.split(), _WEAK) | dict.fromkeys(_STRONG_MODELS.split(), _STRONG)
_WORD: Final = re.compile("[a-z]+[0-9]+")


@lru_cache(maxsize=256)
def strength(model: str) -> float:
    """Returns the strength of the first known word of the model; an unknown model is in the middle."""
    words = _WORD.findall(model.lower())
    return next((_KNOWN[word] for word in words if word in _KNOWN), _MEDIUM)
