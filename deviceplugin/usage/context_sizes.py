"""Remembers what a context was last seen to need on each card."""

from __future__ import annotations

from collections.abc import Mapping


class ContextSizes:
    """By the uuid of the card; of one measurement, the least counts."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._now: dict[str, int] = {}

    def see(self, uuid: str, size: int | None) -> None:
        if size is not None:
            self._now[uuid] = min(size, self._now.get(uuid, size))

    def measured(self) -> Mapping[str, int]:
        """Ends a measurement; a card on which it showed no context keeps its size."""
        self._last |= self._now
        self._now = {}
        return self._last
