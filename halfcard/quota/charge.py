"""Computes a pod's charge in the budgets of a GpuQuota: the same amounts in every dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import reduce
from operator import or_
from typing import Final

from ..claims import CARDS, CORES, MEMORY, SHARES, WHOLE_CARD, Claim, ContainerStage, Need, Part
from .ledger import Amounts, sum_of

COUNTED: Final = (CORES, MEMORY, CARDS, SHARES)


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
    """Returns the charge of one container while it runs; a part of memory in per cent counts as cores, like a half."""
    if claim.fills_cards:
        return +Counter({CORES: claim.cards * WHOLE_CARD, CARDS: claim.cards})
    each = {CORES: max(claim.cores_pct or 0, claim.memory_pct or 0), MEMORY: claim.memory_mib or 0, SHARES: 1}
    return +Counter({key: claim.cards * amount for key, amount in each.items()})


def uncounted(needs: Iterable[Need]) -> frozenset[str]:
    """Returns what the charge leaves out because it depends on the card that the pod will get."""
    return frozenset().union(*[_unknown(need.claim) for need in needs])


def _unknown(claim: Claim) -> Collection[str]:
    if claim.part is Part.SLICE:
        return CORES, MEMORY
    return () if claim.fills_cards or claim.memory_mib is not None else (MEMORY,)
