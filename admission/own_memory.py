"""Lowers the memory that whole cards name to what cards have: kube-scheduler counts it, and cards bring their own."""

from __future__ import annotations

from dataclasses import replace

from halfcard.claims import MEMORY, Claim
from halfcard.dialects import Dialect
from halfcard.pod.requests import RequestingContainer, ResourceRequest


def with_own_memory(
    asked: tuple[RequestingContainer, ...], smallest_mib: int | None
) -> tuple[RequestingContainer, ...]:
    """Returns the requests with at most the memory of the smallest card for each whole card."""
    return asked if smallest_mib is None else tuple([_lowered(each, smallest_mib) for each in asked])


def _lowered(each: RequestingContainer, card_mib: int) -> RequestingContainer:
    request, claim, dialect = each.request, each.claim, each.request.dialect
    if claim is None or dialect is None or not names_own_memory(claim) or (claim.memory_mib or 0) <= card_mib:
        return each
    asks = tuple([_at_most(ask, dialect, claim.cards, card_mib) for ask in request.asks])
    return each._replace(request=replace(request, asks=asks))


def names_own_memory(claim: Claim) -> bool:
    """Returns whether a claim on whole cards names an amount of memory, which it has anyway."""
    return claim.exclusive and claim.memory_mib is not None


def _at_most(ask: ResourceRequest, dialect: Dialect, cards: int, card_mib: int) -> ResourceRequest:
    unit = dialect.units.get(ask.resource)
    if unit is None or unit.counted != MEMORY:
        return ask
    times = 1 if ask.resource in dialect.per_card else cards
    return replace(ask, amount=min(ask.amount, card_mib // unit.size * times))
