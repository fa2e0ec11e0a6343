"""Prints what the larger commands found, for people and for scripts."""
