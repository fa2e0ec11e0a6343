"""Holds the policies in force, which are made from the expected pods and the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from halfcard.placing.room import Room

from ..state import State
from .fleet import fleet_of
from .placement import POLICIES, PackingPolicy
from .strength import Strengths
from .workload_mix import WorkloadMix


@dataclass(slots=True)
class PolicyCache:
    """Policies by name.

    Attributes:
        default: the policy of pods that name none.
        mix: returns the expected pods.
        strengths: those of the settings.
    """

    default: str
    mix: Callable[[], WorkloadMix]
    state: State
    strengths: Strengths = ()
    _policies: dict[str, PackingPolicy] = field(default_factory=dict)

    def policy(self, name: str) -> PackingPolicy:
        wanted = name or self.default
        if (made := self._policies.get(wanted)) is None:
            fleet = fleet_of(self.state.nodes().values(), self.strengths)
            made = POLICIES[wanted](self.mix(), fleet).adapted(self._rooms())
            self._policies[wanted] = made
        return made

    def clear(self) -> None:
        self._policies.clear()

    def adapt(self) -> bool:
        """Adapts the policies to the present cluster; returns whether the value of any node may differ."""
        before, rooms = self._policies, self._rooms()
        self._policies = {name: policy.adapted(rooms) for name, policy in before.items()}
        return any(self._policies[name] is not policy for name, policy in before.items())

    def _rooms(self) -> list[Room]:
        return [room for name in self.state.nodes() if (room := self.state.room(name)) is not None]
