"""A base for what `with` starts and ends: a start that fails half-way leaves nothing behind either."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self


class Startable:
    """A subclass starts in `_start` and registers on `_stack` how each thing ends."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends everything in the reverse order of starting; a second call does nothing."""
        self._stack.close()

    def _start(self) -> None:
        raise NotImplementedError
