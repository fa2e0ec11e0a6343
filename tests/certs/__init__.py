"""Certificates: the decision by tables, the files by crashes and races, the result by real handshakes."""
