"""The artefacts of one version: wheel, image, its bill of materials, chart, manifests, and their hashes.

Invariant: the same sources give the same bytes, and only `halfcard.__version__` defines the version.
"""
