"""The interface of the cluster's state, whether it comes from a folder or from an API server."""

from __future__ import annotations

from typing import Protocol

from halfcard.cluster_view import ClusterView


class ClusterSource(Protocol):
    """The latest known state; no method waits for the cluster."""

    def view(self) -> ClusterView: ...

    def ready(self) -> bool:
        """Returns whether everything has been read once; stays true when the state can later not be refreshed."""

    def problems(self) -> tuple[str, ...]:
        """Returns the current problems, one sentence each: the view may be outdated or incomplete."""

    async def watch(self) -> None:
        """Refreshes the view until cancelled."""
