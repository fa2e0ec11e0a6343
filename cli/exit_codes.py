"""Exit codes that scripts can trust."""

from __future__ import annotations

from typing import Final

EXIT_OK: Final = 0
EXIT_REFUSED: Final = 1
"""It worked, and the answer is no."""
EXIT_USAGE: Final = 2
"""The input or the arguments cannot be used."""
EXIT_CANNOT_START: Final = 3
"""A service could not come up: a port in use, a folder that cannot be written."""
