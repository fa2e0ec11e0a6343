"""Incidents that the driver reports, and waiting for them during other calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Final

import pytest

from deviceplugin.gpus.interface import GpusError, Incident
from deviceplugin.gpus.nvml import Nvml
from tests.nvml.stand_in import StandIn

from .conftest import Opened
from .test_nvml import ONE, OTHER

LONG_S: Final = 30.0
SOON_S: Final = 5.0


def test_an_incident_has_its_card_and_xid_and_is_returned_once(driver: StandIn, opened: Opened) -> None:
    nvml = opened()
    nvml.read()
    driver.xid(OTHER, 79)
    driver.double_bit_error(ONE)
    driver.xid("", 119)
    incidents = [nvml.wait(SOON_S) for _ in range(3)]
    assert incidents == [(Incident(OTHER, 79),), (Incident(ONE, 48),), (Incident("", 119),)]
    assert nvml.wait(0.01) == ()


def test_incidents_before_the_start_are_not_returned(driver: StandIn, opened: Opened) -> None:
    driver.xid(ONE, 79)
    nvml = opened()
    nvml.read()
    assert nvml.wait(0.01) == ()


def test_a_pending_wait_returns_incidents_of_a_driver_that_is_opened_later(driver: StandIn, opened: Opened) -> None:
    nvml = opened()
    for _ in range(2):
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(nvml.wait, LONG_S)
            driver.reload()
            nvml.read()
            driver.xid(ONE, 79)
            assert waiting.result(SOON_S) == (Incident(ONE, 79),)


@pytest.mark.usefixtures("driver")
def test_closing_ends_a_wait(opened: Opened) -> None:
    nvml = opened()
    nvml.read()
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(nvml.wait, LONG_S)
        nvml.close()
        assert waiting.result(SOON_S) == ()


def test_reads_and_a_wait_survive_reloads_of_the_driver(driver: StandIn, opened: Opened) -> None:
    nvml, heard, ended = opened(), Event(), Event()
    with ThreadPoolExecutor() as threads:
        going_on = [threads.submit(_wait_on, nvml, heard, ended), *(threads.submit(_ask_on, nvml, ended) for _ in "12")]
        try:
            for _ in range(20):
                _come_and_go(driver, nvml)
            while not heard.wait(0.05):
                driver.xid(ONE, 79)
        finally:
            ended.set()
        assert [thread.result(SOON_S) for thread in going_on] == [None] * 3
    assert len(nvml.read()) == 2


def _come_and_go(driver: StandIn, nvml: Nvml) -> None:
    for change in (driver.unload, driver.reload, lambda: driver.fail(ONE), lambda: driver.recover(ONE)):
        change()
        _ask(nvml)


def _wait_on(nvml: Nvml, heard: Event, ended: Event) -> None:
    while not ended.is_set():
        if Incident(ONE, 79) in nvml.wait(0.05):
            heard.set()


def _ask_on(nvml: Nvml, ended: Event) -> None:
    while not ended.wait(0.005):
        _ask(nvml)


def _ask(nvml: Nvml) -> None:
    with suppress(GpusError):
        for gpu in nvml.read():
            nvml.load(gpu.uuid)
