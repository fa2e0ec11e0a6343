"""Holds containers to their share: places the isolation libraries, and gives each container the files that it needs."""
