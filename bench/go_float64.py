"""Go's `rand.Float64`, which only benches draw."""

from __future__ import annotations

from simulation.go_random import GoRandom


def float64(random: GoRandom) -> float:
    """Draws a number from 0 up to, and not including, 1."""
    while (value := random.int63() / (1 << 63)) == 1:
        pass
    return value
