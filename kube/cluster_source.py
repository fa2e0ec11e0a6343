"""The interface of the cluster's state, whether it comes from a folder or from an API server."""

from __future__ import annotations

from typing import Protocol

from halfcard.cluster_view import ClusterView


class ClusterSource(Protocol):
    """The latest known state; asking never waits."""

    def view(self) -> ClusterView: ...

    def ready(self) -> bool:
        """Has everything been seen once? Stays true when the state can later not be refreshed."""

    def problems(self) -> tuple[str, ...]:
        """Describes what is wrong now, a sentence each: the view may be older or smaller than the cluster."""

    async def watch(self) -> None:
        """Keeps the view fresh until cancelled."""
