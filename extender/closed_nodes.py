"""Decides which nodes the quotas of a namespace close to a pod. Pure."""

from __future__ import annotations

from functools import partial

from halfcard.placing.demand import Demand

from .quota_limits import QuotaLimits
from .state import State


def why_closed(limits: QuotaLimits, state: State, name: str, demand: Demand) -> str:
    """Returns why quotas close a node; empty where they do not."""
    if state.driver(name):
        return limits.why_not_of_driver(state.kind(name))
    return limits.why_not(state.kind(name), demand, partial(state.room, name))
