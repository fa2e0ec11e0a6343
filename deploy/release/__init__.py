"""What is published of one version: wheel, image, its bill of materials, chart and manifests, and their hashes.

The law: the same sources make the same bytes, and only `halfcard.__version__` says which version it is.
"""
