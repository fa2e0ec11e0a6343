"""The scores of nodes as they were told last: of thousands few have changed since, and only those are written again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .placement import TOP, scores_of_kinds
from .wire import Prioritized


class ScoresTold:
    """About these nodes, none of them named twice; `letter_of` says which of the ranks a node has."""

    def __init__(self, names: Sequence[str], letter_of: Callable[[str], str]) -> None:
        self.names = names
        self._letter_of = letter_of
        self._at = {name: at for at, name in enumerate(names)}
        self._letters = [*map(letter_of, names)]
        self._scores = b""
        self._answer = Prioritized(names)

    def now(self, ranks: Sequence[float], changed: Iterable[str]) -> bytes:
        """The answer where no other nodes have another rank than when it was given last."""
        touched = {self._at[name] for name in changed if name in self._at}
        for at in touched:
            self._letters[at] = self._letter_of(self.names[at])
        before, self._scores = self._scores, scores_of_kinds(ranks, "".join(self._letters), self.names)
        best = {scores.index(TOP) for scores in (before, self._scores) if scores}
        return self._answer.of(self._scores, touched | best)
