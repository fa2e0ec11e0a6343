from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def root_handlers() -> Iterator[None]:
    """Restores the handlers that `take_over_library_logging` removes."""
    before = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = before
