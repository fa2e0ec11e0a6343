"""Corrects the GPU time that held containers claim by what the driver measures of them.

The libraries estimate how long kernels take; where these are longer than a card's time slices, a neighbour's turns make
all their samples too long.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .shared_files import AccountCard

UNCORRECTED: Final = 1000
LEAST: Final = 100
MOST: Final = 4000
_LEAST_CLAIM_NS: Final = 10_000_000
"""One per cent of a second, in which the driver measures."""


class CoreTimes(NamedTuple):
    """GPU time of a container on a card, lately: each second counts half as much as the one after it.

    Attributes:
        shown: what the driver measured, in ns.
        claimed: by how much the rows of the account grew.
    """

    shown: float = 0.0
    claimed: float = 0.0

    def after(self, shown_ns: float, claimed_ns: float) -> CoreTimes:
        return CoreTimes(self.shown / 2 + shown_ns, self.claimed / 2 + claimed_ns)

    @property
    def correction(self) -> int:
        """Returns by what the claims are to be multiplied, in 1/1000.

        A driver that does not measure processes shows 0, which must not make kernels cheap.
        """
        if not self.shown or self.claimed < _LEAST_CLAIM_NS:
            return UNCORRECTED
        return round(max(LEAST, min(MOST, self.shown * UNCORRECTED / self.claimed)))


class Growth(NamedTuple):
    """The growth of the rows of an account, in ns."""

    gpu: int
    throttled: int


def growth(before: AccountCard, after: AccountCard) -> Growth:
    """Returns the growth of rows; numbers that their container made smaller did not grow."""
    known = {row.owner: row for row in before.rows.values()}
    pairs = [(row, known.get(row.owner, row._replace(gpu_ns=0, throttled_ns=0))) for row in after.rows.values()]
    return Growth(
        sum(max(0, row.gpu_ns - old.gpu_ns) for row, old in pairs),
        sum(max(0, row.throttled_ns - old.throttled_ns) for row, old in pairs),
    )
