"""The error that prevents a process from serving; its text says what, where, got, rule, fix."""

from __future__ import annotations


class CannotServeError(Exception):
    """Something outside the program (a file, a port, the start of an application) prevents listening."""
