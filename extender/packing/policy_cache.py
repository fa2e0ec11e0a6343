"""Keeps the policies in force, made from the expected pods and the cluster, and made again now and then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from halfcard.placing.room import Room

from ..state import State
from .fleet import fleet_of
from .placement import POLICIES, PackingPolicy
from .workload_mix import WorkloadMix


@dataclass(slots=True)
class PolicyCache:
    """Policies by name; `default` is for pods that name none, `mix` returns the expected pods."""

    default: str
    mix: Callable[[], WorkloadMix]
    state: State
    _made: dict[str, PackingPolicy] = field(default_factory=dict)

    def policy(self, name: str) -> PackingPolicy:
        wanted = name or self.default
        if (made := self._made.get(wanted)) is None:
            made = POLICIES[wanted](self.mix(), fleet_of(self.state.nodes().values())).adapted(self._rooms())
            self._made[wanted] = made
        return made

    def clear(self) -> None:
        self._made.clear()

    def adapt(self) -> bool:
        """To the cluster as it stands; True where that changes what nodes are worth."""
        before, rooms = self._made, self._rooms()
        self._made = {name: policy.adapted(rooms) for name, policy in before.items()}
        return any(self._made[name] is not policy for name, policy in before.items())

    def _rooms(self) -> list[Room]:
        return [room for name in self.state.nodes() if (room := self.state.room(name)) is not None]
