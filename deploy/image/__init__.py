"""Halfcard's one image, built from Debian's packages and pinned wheels; it needs no engine and no registry.

The law: the same packages, wheels and sources make the same bytes, whoever builds where and when.
"""
