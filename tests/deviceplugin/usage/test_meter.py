"""The meter of the agent, with a stand-in for the driver and a folder in place of /proc."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deviceplugin.gpus.interface import GpusError, Load, Process
from deviceplugin.usage.cgroups import Cgroups
from deviceplugin.usage.meter import GrantedCards, Meter
from deviceplugin.usage.usage_report import NodeUsageReport
from halfcard.placing.node_usage import usage_of_pods
from tests.waiting import until

from ..usages import IDLE, NODE, SEED, id_of, load

UID = "0f1a9f52-5c3e-4a0a-9d0e-6b1f8f0c7a11"


@dataclass
class Driver:
    """Answers once `may_answer` is set."""

    loads: dict[str, Load]
    asked: list[str] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def load(self, uuid: str) -> Load:
        self.asked.append(uuid)
        assert self.may_answer.wait(10)
        if uuid not in self.loads:
            raise GpusError(f"{uuid} is lost")
        return self.loads[uuid]


@pytest.fixture
def driver() -> Driver:
    return Driver({"GPU-0": load(Process(7, 300, 5)), "GPU-1": IDLE})


@pytest.fixture
def meter(tmp_path: Path, driver: Driver) -> Meter:
    file = tmp_path / "7" / "cgroup"
    file.parent.mkdir()
    file.write_text(f"0::/kubepods/pod{UID}/{id_of('vcuda/tensorflow')}\n")
    given = GrantedCards(NODE, usage_of_pods(NODE, [SEED.facts.bound()]), [SEED])
    return Meter(driver.load, Cgroups(tmp_path / "cgroup", tmp_path), lambda: given, is_made_up=True)


async def test_the_drivers_processes_are_found_in_their_containers(meter: Meter, driver: Driver) -> None:
    driver.may_answer.set()
    seen = await meter.usage()
    assert seen.is_made_up and seen.cards[0].strangers == ()
    assert [part.pids for part in seen.containers[0].cards] == [(7,)]


async def test_a_lost_card_does_not_affect_other_cards(meter: Meter, driver: Driver) -> None:
    del driver.loads["GPU-1"]
    driver.may_answer.set()
    assert [card.used_mib for card in (await meter.usage()).cards] == [300, None]


async def test_concurrent_callers_share_a_measurement_and_do_not_block_the_loop(meter: Meter, driver: Driver) -> None:
    asking = [asyncio.create_task(meter.usage()) for _ in range(3)]
    await until(lambda: bool(driver.asked), what="the driver to be asked")
    asking[0].cancel()  # a cancelled request does not affect the others
    driver.may_answer.set()
    _, *rest = await asyncio.gather(*asking, return_exceptions=True)
    assert rest[0] == rest[1] and isinstance(rest[0], NodeUsageReport)
    assert driver.asked == ["GPU-0", "GPU-1"]
    await meter.usage()
    assert driver.asked == ["GPU-0", "GPU-1"] * 2
