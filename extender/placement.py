"""How a node is chosen: every policy is a value of what is left, and a pod goes where the value falls least.

The law: a policy looks at what is left on one node and nothing else, so that an answer is good until the node changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, repeat
from operator import eq
from typing import Final, Protocol

from halfcard.placing.room import Room

from .fleet import Fleet
from .mix import Mix
from .policies.binpack import Binpack
from .policies.default import default_for
from .policies.fgd import FragmentationGradientDescent
from .policies.spread import Spread

TOP: Final = 10
"""kube-scheduler's best score; one node has it, because the scheduler breaks ties at random."""


class Policy(Protocol):
    @property
    def name(self) -> str: ...

    def value(self, room: Room) -> float:
        """What a node is worth when this is left on it; a pod's gain is the value after less the value before."""

    def rank(self, gain: float) -> float:
        """Gains of equal rank are as good as each other, and the first node in a fixed order takes the pod."""

    def adapted(self, rooms: Iterable[Room]) -> Policy:
        """For the cluster as it stands now; the same object while nothing that it knows is worth another amount."""


POLICIES: Final[Mapping[str, Callable[[Mix, Fleet], Policy]]] = {
    "default": default_for,
    "binpack": lambda _mix, _fleet: Binpack(),
    "spread": lambda _mix, _fleet: Spread(),
    "fgd": FragmentationGradientDescent,
}
"""How each is made from the pods that are expected and the cluster they come to."""


def scores(ranks: Sequence[float], names: Sequence[str]) -> list[int]:
    """The first by name of the best has 10; all others have 9 down to 0, by how far they are behind."""
    if not ranks:
        return []
    kinds = set(ranks)
    best, worst = max(kinds), min(kinds)
    step = (best - worst) / (TOP - 1) or 1.0
    table = {rank: int((rank - worst) / step + 1e-9) for rank in kinds} if best > worst else {best: TOP - 1}
    given = [*map(table.__getitem__, ranks)]
    best_ones = compress(range(len(ranks)), map(eq, ranks, repeat(best)))
    given[min(best_ones, key=names.__getitem__)] = TOP
    return given
