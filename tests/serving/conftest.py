from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def root_handlers() -> Iterator[None]:
    """Puts back what `take_over_library_logging` takes away."""
    before = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = before
