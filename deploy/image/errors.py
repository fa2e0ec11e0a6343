"""Why an image cannot be built."""

from __future__ import annotations


class CannotBuildError(Exception):
    """In one sentence, with what to do."""
