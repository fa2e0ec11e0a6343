"""Whatever a test starts and ends with `with`: a start that fails half-way leaves nothing behind either."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self


class Startable:
    """A subclass starts in `_start` and puts what ends each thing on `_stack`."""

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
        """In the reverse order of starting; harmless the second time."""
        self._stack.close()

    def _start(self) -> None:
        raise NotImplementedError
