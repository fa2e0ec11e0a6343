"""A driver that limits memory by cgroup is asked to; the others say so, and go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from deviceplugin.gpus.interface import GpusError, NoMemoryLimitsError
from tests.nvml.stand_in import StandIn

from .conftest import Opened

CARD = "GPU-00000001"


def test_the_driver_gets_the_limit_of_a_cgroup(driver: StandIn, opened: Opened, tmp_path: Path) -> None:
    driver.change(CARD, limits=1)
    opened().limit_memory(CARD, str(tmp_path), 5120)
    assert driver.memory_limits() == [(CARD, str(tmp_path), 5120)]


NO_RIGHT = {"nvmlDeviceSetMemoryLimits_v1": 4}


@pytest.mark.parametrize("changes", [{}, {"limits": 1, "mig": 1}, {"limits": 1, "lacks": NO_RIGHT}])
def test_a_driver_that_cannot_says_so(
    driver: StandIn, opened: Opened, tmp_path: Path, changes: dict[str, object]
) -> None:
    driver.change(CARD, **changes)
    nvml = opened()
    with pytest.raises(NoMemoryLimitsError, match="limits no memory by cgroup"):
        nvml.limit_memory(CARD, str(tmp_path), 5120)
    assert len(nvml.read()) == 2


def test_a_cgroup_that_has_ended_does_not_reopen_the_driver(driver: StandIn, opened: Opened, tmp_path: Path) -> None:
    driver.change(CARD, limits=1)
    nvml = opened()
    nvml.read()
    session = nvml._session
    for error in ("/gone", str(tmp_path)):
        driver.change(CARD, lacks={} if error == "/gone" else {"nvmlDeviceSetMemoryLimits_v1": 2})
        with pytest.raises(GpusError, match="is not limited"):
            nvml.limit_memory(CARD, error, 5120)
    assert nvml._session is session and driver.memory_limits() == []
