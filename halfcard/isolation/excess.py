"""What the processes of a container use of a card beyond what they say: contexts, modules, what the driver rounds up.

Law: memory that a process takes or gives back during the measurement counts as said, so that nothing that fits is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from .shared_files import AccountCard, AccountRow, Excess

_NONE: Final = Excess(0, 0)


def excesses(before: AccountCard, measured: Mapping[int, int], after: AccountCard) -> Sequence[Excess]:
    """Returns the excess of each row, by its place.

    Args:
        before: the account before the measurement.
        measured: what the driver measured, in bytes, by the names of the processes.
        after: the account after the measurement.
    """
    end = max(after.rows, default=-1) + 1
    return [_excess(before.rows.get(at), measured, after.rows.get(at)) for at in range(end)]


def _excess(before: AccountRow | None, measured: Mapping[int, int], after: AccountRow | None) -> Excess:
    if before is None or after is None or before.owner != after.owner:
        return _NONE
    more = measured.get(after.process, 0) - max(before.bytes, after.bytes)
    return Excess(after.owner, more) if more > 0 else _NONE
