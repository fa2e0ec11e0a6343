"""Builds Halfcard's image from Debian packages and pinned wheels, without a container engine or a registry.

Invariant: the same packages, wheels and sources give the same bytes on every machine and at any time.
"""
