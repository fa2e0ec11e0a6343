"""The cards over time, and over restarts of the agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deviceplugin.card_watch import CardWatch
from deviceplugin.gpus.health_file import HealthFile
from deviceplugin.gpus.interface import Gpu, GpusError, Incident, Load
from tests.waiting import until

A, B = Gpu(0, "GPU-a", "Tesla T4", 15109), Gpu(1, "GPU-b", "Tesla T4", 15109)
SICK = {"GPU-a": "Xid 79, it fell off the bus: reset the card", "GPU-b": ""}
WELL = {"GPU-a": "", "GPU-b": ""}


class Driver:
    """A driver; `gpus` is None while it does not answer."""

    is_made_up = False

    def __init__(self) -> None:
        self.gpus: tuple[Gpu, ...] | None = (A, B)
        self.incidents: list[Incident] = []

    def read(self) -> tuple[Gpu, ...]:
        if self.gpus is None:
            raise GpusError("no driver")
        return self.gpus

    def limit_memory(self, uuid: str, cgroup: str, mib: int) -> None:
        raise NotImplementedError

    def load(self, uuid: str) -> Load:
        return Load(0, 0, ())

    def wait(self, timeout_s: float) -> tuple[Incident, ...]:
        found, self.incidents = tuple(self.incidents), []
        return found

    def close(self) -> None:
        pass


class Machine:
    def __init__(self, folder: Path) -> None:
        self.driver = Driver()
        self.folder = folder
        self.boot = folder / "boot_id"
        self.boots("one")

    def boots(self, name: str) -> None:
        self.boot.write_text(name + "\n")
        self.restart()

    def restart(self) -> None:
        """Restarts only the agent."""
        self.file = HealthFile(self.folder / "state", self.boot)
        self.watch = CardWatch(self.driver, lambda: None, lambda: 1.0, self.file)

    async def look(self) -> dict[str, str]:
        await self.watch.read()
        return {card.uuid: card.why_not for card in self.watch.cards()}

    async def falls_off_the_bus(self) -> None:
        self.driver.incidents.append(Incident(A.uuid, 79))
        running = asyncio.create_task(self.watch.run())
        await until(lambda: any(card.why_not for card in self.watch.cards()))
        running.cancel()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def test_a_card_that_fell_off_the_bus_does_not_come_back_by_a_restart_of_the_agent(machine: Machine) -> None:
    assert await machine.look() == WELL
    await machine.falls_off_the_bus()
    machine.restart()
    assert await machine.look() == SICK
    machine.boots("two")
    assert await machine.look() == WELL


async def test_before_the_driver_has_answered_no_card_is_known(machine: Machine) -> None:
    await machine.falls_off_the_bus()
    machine.restart()
    assert machine.watch.cards() == ()
    machine.driver.gpus = None
    assert await machine.look() == {} and machine.watch.trouble == "no driver"


async def test_a_card_that_is_missing_during_a_restart_stays_listed_and_recovers(machine: Machine) -> None:
    await machine.falls_off_the_bus()
    machine.driver.gpus = (B,)
    await machine.look()
    machine.restart()
    assert (await machine.look()).keys() == {A.uuid, B.uuid}
    machine.driver.gpus = (A, B)
    assert await machine.look() == WELL
    machine.restart()
    assert await machine.look() == WELL


async def test_a_failed_write_is_reported_and_repeated(machine: Machine) -> None:
    state = machine.folder / "state"
    state.write_text("in the way")
    await machine.falls_off_the_bus()
    assert "so unhealthy cards count as healthy after a restart of the agent" in machine.file.trouble
    state.unlink()
    await machine.look()
    assert machine.file.trouble == ""
    machine.restart()
    assert await machine.look() == SICK
