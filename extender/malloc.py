"""Configures glibc to return freed memory: an answer for thousands of nodes is larger than what it keeps for reuse."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_MOST_KEPT: Final = 64 * 2**20
_LARGE: Final = 32 * 2**20


def keep_freed_memory() -> None:
    """Given back to the kernel and taken again with each call, it cost 40 % of an answer of 300 kB.

    Other C libraries than glibc do as they do.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT)
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
