"""Checks of nodes: their agents, cards, versions, and the programs of other systems."""
