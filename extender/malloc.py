"""Configures glibc to keep freed memory: an answer for thousands of nodes is larger than what it keeps by default."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_MAX_KEPT: Final = 64 * 2**20
_LARGE: Final = 32 * 2**20


def keep_freed_memory() -> None:
    """Keeps up to 64 MiB: returning memory to the kernel with each call took 40 % of an answer of 300 kB.

    Other C libraries than glibc are left as they are.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _MAX_KEPT)
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
