"""The exit codes of every command and process; scripts can rely on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_CANNOT_START: Final = 3
EXIT_NOT_JUDGED: Final = 4
EXIT_NOT_INSTALLED: Final = 5
EXIT_INTERRUPTED: Final = 130
"""What a shell reports of a program that SIGINT has ended."""


class UnusableInputError(Exception):
    """The arguments, the settings or the input cannot be used; ends a process with EXIT_USAGE."""


class UnreadableError(Exception):
    """A manifest, or what the cluster says, cannot be read; ends a command with EXIT_USAGE."""


MEANINGS: Final[Mapping[int, str]] = {
    EXIT_OK: "success; of a process: stopped as asked",
    EXIT_REFUSED: "it worked, and the answer is no: something is refused, wrong, or left to do",
    EXIT_USAGE: "the arguments, the settings or the input cannot be used",
    EXIT_CANNOT_START: "a process cannot start or go on: a port in use, a folder that cannot be written",
    EXIT_NOT_JUDGED: "of `halfcard review --strict`: nothing is refused, and something was not judged",
    EXIT_NOT_INSTALLED: "of `halfcard doctor`: Halfcard is not installed in the cluster",
    EXIT_INTERRUPTED: "a command was interrupted by Ctrl-C",
}
