"""Gates: checks of an admitted object that may have to wait for an answer from elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .verdict import Verdict
from .writes import Write

Gate = Callable[[Write, Verdict, float], Awaitable[Verdict]]
"""The last argument is the time of the event loop until which a gate may wait."""


def in_turn(*gates: Gate) -> Gate:
    """Combines gates in order; once one refuses, the next is not called."""

    async def passed(write: Write, verdict: Verdict, until: float) -> Verdict:
        for gate in gates:
            verdict = await gate(write, verdict, until)
            if not verdict.allowed:
                break
        return verdict

    return passed
