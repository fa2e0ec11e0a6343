"""Everything that installs Halfcard: its image, its chart, and the manifests that are made from it."""
