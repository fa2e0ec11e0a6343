"""Laws are judged by their truth, not by how busy the machine is.

CI tries the same examples every time, so that a change is judged by what it changed; everywhere else they differ from
run to run, and what they find becomes a row of a table.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "halfcard",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("halfcard")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Asynchronous tests run on the loop of the processes."""
    return "asyncio", {"use_uvloop": True}
