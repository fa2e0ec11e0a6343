"""A node with the stand-in driver, a container there that has a share, and a program in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .build import SANITIZED
from .node import Container, Driver, Program


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return Driver(tmp_path_factory.mktemp("run") / "halfcard", sanitizers=SANITIZED)


@pytest.fixture
def container(driver: Driver) -> Container:
    return driver.container()


@pytest.fixture
def program(container: Container) -> Iterator[Program]:
    with container.program() as found:
        yield found
