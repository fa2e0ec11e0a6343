"""Fixtures: `cluster` and `node` are a real node without Halfcard, `gpus` and `space` one with all of Halfcard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.nodes.node import RealNode
from tests.cluster.conftest import cluster, pytest_runtest_makereport

from .gpu_cluster import GpuCluster, gpu_cluster

__all__ = ["cluster", "pytest_runtest_makereport"]

_HERE = Path(__file__).parent
_TIMEOUT_S = 300  # the first test of a session also starts the cluster and the node


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.cluster)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> Iterator[RealNode]:
    with RealNode(cluster, "node-a") as running:
        yield running


@pytest.fixture(scope="session")
def gpus() -> Iterator[GpuCluster]:
    with gpu_cluster() as running:
        yield running


_numbers = count(1)


@pytest.fixture
def space(gpus: GpuCluster) -> Iterator[str]:
    """A new namespace for one test; its pods are deleted afterwards, so that their cards are free."""
    with gpus.space(f"space-{next(_numbers)}") as name:
        yield name
