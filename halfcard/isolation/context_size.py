"""How much memory a context needs on a card, by what held processes say and the driver measures.

Law: a process, which may say what it likes, never makes the size greater than another one shows it to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .shared_files import AccountCard, AccountRow

MOST: Final = 4 << 30
"""More than any context has: then the process uses memory that it does not say."""


def context_size(before: AccountCard, measured: Mapping[int, int], after: AccountCard) -> int | None:
    """Returns the least that the contexts of one process have each, in bytes; None where no process has any.

    Args:
        before: the account before the measurement.
        measured: what the driver measured, in bytes, by the names of the processes.
        after: the account after the measurement; of a process that changed its row meanwhile nothing is known.
    """
    same = [row for at, row in after.rows.items() if before.rows.get(at) == row and row.process in measured]
    sizes = [_size(row, measured[row.process]) for row in same if row.contexts]
    return min((size for size in sizes if size is not None), default=None)


def _size(row: AccountRow, measured: int) -> int | None:
    size = (measured - row.bytes + row.context_bytes) // row.contexts
    return size if 0 <= size <= MOST else None
