"""The fixtures `cluster` and `node`: one real node, in a cluster without any other at first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.conftest import cluster, pytest_runtest_makereport
from tests.cluster.node import Node

__all__ = ["cluster", "pytest_runtest_makereport"]

_HERE = Path(__file__).parent
_TIMEOUT_S = 300  # a session's first test starts cluster and node, on a busy machine too


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> Iterator[Node]:
    with Node(cluster, "node-a") as running:
        yield running
