"""Checks of the scheduler: its configuration, and its calls of the extender."""
