"""Judges what programs on a card did. Pure: it is given the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Final, NamedTuple

MOST_OVERHEAD: Final = 0.005
CORES_WITHIN_PCT: Final = 3.0
MEMORY_USED_OF_SHARE: Final = 0.8
"""A program fills its share in blocks, beside its context and what its allocator keeps."""

CARD_BEYOND_SHARE_MIB: Final = 256
UTILISATION_PCT: Final = (90.0, 105.0)


class Verdict(NamedTuple):
    passed: bool
    figures: str


class Filled(NamedTuple):
    """What a program that allocated until it was refused had, what it saw as the total, and by how much the card's use
    grew, in MiB.
    """

    taken: int
    total: int
    on_card: int


def of_memory(share_mib: int, filled: Filled) -> Verdict:
    """Judges one container that filled its share."""
    fits = MEMORY_USED_OF_SHARE * share_mib <= filled.taken <= share_mib
    holds = filled.on_card <= share_mib + CARD_BEYOND_SHARE_MIB
    figures = f"share {share_mib}, took {filled.taken}, saw {filled.total}, on the card {filled.on_card} MiB"
    return Verdict(fits and holds and filled.total == share_mib, figures)


def of_cores(shares_pct: Mapping[str, int], rounds: Mapping[str, float], alone: float) -> Verdict:
    """Judges neighbours by their rounds per second, of the rounds of one program alone on the card without a share."""
    got = {name: 100 * rounds[name] / alone for name in shares_pct}
    passed = all(abs(got[name] - pct) <= CORES_WITHIN_PCT for name, pct in shares_pct.items())
    return Verdict(passed, ", ".join(f"share {pct}: {got[name]:.1f} %" for name, pct in shares_pct.items()))


def of_overhead(bare_s: Sequence[float], held_s: Sequence[float]) -> Verdict:
    """Judges the times of the same work, measured in turns."""
    more = median(held_s) / median(bare_s) - 1
    return Verdict(more <= MOST_OVERHEAD, f"{100 * more:+.2f} % ({median(bare_s):.3f} s without)")


def of_utilisation(samples: Sequence[Mapping[int, int]]) -> Verdict:
    """Judges whether the utilisation of processes that use the whole card in turns adds up to that of the card.

    A sample has the per cents of each process, by its pid.
    """
    sums = [sum(sample.values()) for sample in samples if len(sample) > 1]
    if not sums:
        return Verdict(passed=False, figures="NVML showed no two processes at once")
    least, most = UTILISATION_PCT
    return Verdict(least <= mean(sums) <= most, f"in the mean {mean(sums):.0f} %, {min(sums)} to {max(sums)}")


def of_answer(answer: Mapping[str, object]) -> Verdict:
    """Judges a program that checks its own result."""
    return Verdict(answer.get("right") is True, str(answer))
