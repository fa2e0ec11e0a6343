"""The policies in force: made from the pods that are expected and the cluster they come to, and now and then anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from halfcard.cards import Node

from .fleet import fleet_of
from .mix import Mix
from .placement import POLICIES, Policy


@dataclass(slots=True)
class Expectations:
    """`default` is the policy of pods that name none; `mix` tells which pods are expected now."""

    default: str
    mix: Callable[[], Mix]
    nodes: Callable[[], Iterable[Node]]
    _made: dict[str, Policy] = field(default_factory=dict)

    def policy(self, name: str) -> Policy:
        wanted = name or self.default
        if (made := self._made.get(wanted)) is None:
            made = self._made[wanted] = POLICIES[wanted](self.mix(), fleet_of(self.nodes()))
        return made

    def renew(self) -> None:
        self._made.clear()
