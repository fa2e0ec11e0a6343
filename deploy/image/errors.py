"""Why an image cannot be built."""

from __future__ import annotations


class CannotBuildError(Exception):
    """The image cannot be built; one sentence, with what to do."""
