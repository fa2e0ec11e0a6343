"""The fixtures `cluster`, `webhook` and `space`, and the logs of a cluster's components beside every failure."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest

from .cluster import Cluster
from .installation import Installation

_HERE = Path(__file__).parent
_TIMEOUT_S = 300  # a session's first test starts the cluster, on a busy machine too


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for name, value in item.funcargs.items():
            if isinstance(value, Cluster):
                report.sections.append((f"logs of {name}", value.components.log_tails()))
    return report


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture(scope="session")
def judged_cluster() -> Iterator[Cluster]:
    """One of its own: where Halfcard is installed, the bare pods of other tests would be refused."""
    with Cluster() as running:
        yield running


@pytest.fixture(scope="session")
def webhook(judged_cluster: Cluster) -> Installation:
    """Halfcard's admission as shipped, one replica."""
    installation = Installation(judged_cluster)
    installation.add_replica()
    installation.register()
    return installation


_numbers = count(1)


@pytest.fixture
def space(judged_cluster: Cluster) -> str:
    """A namespace for one test."""
    return judged_cluster.create_namespace(f"space-{next(_numbers)}")
