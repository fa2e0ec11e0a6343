"""Halfcard's one image, built from Debian's packages and pinned wheels, without an engine and without a registry.

Invariant: the same packages, wheels and sources make the same bytes on every machine and at any time.
"""
