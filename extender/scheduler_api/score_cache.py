"""Caches the encoded scores of the last answer: few of thousands change, and only those are encoded again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..packing.placement import TOP, encode_scores
from .wire import PrioritizeEncoder


class ScoreCache:
    """The scores of distinct nodes; `letter_of` returns the letter of a node's rank (see `answer_cache`)."""

    def __init__(self, names: Sequence[str], letter_of: Callable[[str], str]) -> None:
        self.names = names
        self._letter_of = letter_of
        self._at = {name: at for at, name in enumerate(names)}
        self._letters = [*map(letter_of, names)]
        self._scores = self._answer = b""
        self._changed: set[int] = set()
        self._encoder = PrioritizeEncoder(names)

    def change(self, nodes: Iterable[str]) -> None:
        """Notes nodes whose rank may differ from that of the last answer."""
        self._changed.update(self._at[name] for name in nodes if name in self._at)

    def answer(self, ranks: Sequence[float]) -> bytes:
        if self._changed or not self._answer:
            self._answer = self._encode(ranks)
        return self._answer

    def _encode(self, ranks: Sequence[float]) -> bytes:
        touched, self._changed = self._changed, set()
        for at in touched:
            self._letters[at] = self._letter_of(self.names[at])
        before, self._scores = self._scores, encode_scores(ranks, "".join(self._letters), self.names)
        best = {scores.index(TOP) for scores in (before, self._scores) if scores}
        return self._encoder.encode(self._scores, touched | best)
