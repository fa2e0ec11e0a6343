"""Computes a pod's charge in the budgets of a GpuQuota: the same amounts in every dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Final

from ..claims import CARDS, CORES, MEMORY, SHARES, WHOLE_CARD, Claim, ContainerStage, Need, Part
from .ledger import Amounts, sum_of

COUNTED: Final = (CORES, MEMORY, CARDS, SHARES)

_HALF: Final = WHOLE_CARD // 2


def charge(needs: Iterable[Need]) -> Amounts:
    """Returns the peak of what runs at once, by the formula of native quota: init containers run one after the
    other.
    """
    needs = tuple(needs)
    staying = sum_of(of_claim(need.claim) for need in needs if need.stage is not ContainerStage.INIT)
    return reduce(or_, _stages(needs), staying)


def _stages(needs: Iterable[Need]) -> Iterable[Counter[str]]:
    """Yields the charge while each init container runs: a sidecar counts from its start on."""
    started: Counter[str] = Counter()
    for need in sorted([each for each in needs if each.stage is not ContainerStage.APP], key=lambda each: each.order):
        needed = started + of_claim(need.claim)
        if need.stage is ContainerStage.SIDECAR:
            started = needed
        yield needed


def of_claim(claim: Claim) -> Counter[str]:
    """Returns the charge of one container while it runs."""
    if claim.exclusive:
        return +Counter({CORES: claim.cards * WHOLE_CARD, CARDS: claim.cards})
    cores = _HALF if claim.part is Part.HALF else claim.cores_pct or 0
    each = {CORES: cores, MEMORY: claim.memory_mib or 0, SHARES: 1}
    return +Counter({key: claim.cards * amount for key, amount in each.items()})
