"""Replays of workloads through the placement of the live extender, for `halfcard simulate`."""
