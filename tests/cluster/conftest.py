"""The fixtures `cluster`, `webhook`, `space`, `extender` and `site`; a failed test shows the logs of the components."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.services.extender_installation import ExtenderInstallation
from devcluster.services.installation import Installation

from .load import NO_RATE_LIMITS
from .site import Site

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
    """A second cluster for the webhook, which would refuse the pods of tests that run without Halfcard."""
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


@pytest.fixture(scope="session")
def extender() -> Iterator[ExtenderInstallation]:
    """Halfcard's extender as shipped, one replica, called by the stock scheduler of its own cluster."""
    with Cluster(flags=NO_RATE_LIMITS) as running, ExtenderInstallation(running) as extender:
        extender.add_replica()
        extender.schedule_by(extender.recommended())
        yield extender


@pytest.fixture
def site(extender: ExtenderInstallation) -> Site:
    """A namespace and nodes of one test."""
    number = next(_numbers)
    return Site(extender, extender.cluster.create_namespace(f"site-{number}"), f"Model-{number}")
