"""The error of building an image."""

from __future__ import annotations


class CannotBuildError(Exception):
    """The image cannot be built; the text says why, and what to do."""
