"""Errors of a cluster that cannot start; their messages name the next step."""

from __future__ import annotations


class CannotStartError(Exception):
    """Something is missing; the message says in one sentence what to install or to fix."""


class NotReadyError(Exception):
    """Something did not become true in time; the message carries the tails of the logs."""
