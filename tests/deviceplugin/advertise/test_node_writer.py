"""The node writer at an API server: what it sends, when it sends nothing, and how it handles errors."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

import deviceplugin.advertise.node_writer
from deviceplugin.advertise.node_events import EVENTS_PATH
from deviceplugin.advertise.node_writer import STRATEGIC_MERGE_PATCH, NodeWriter
from halfcard import names
from kube.api.access import Access
from kube.api.calls import MERGE_PATCH, ApiCalls
from serving.log import Log
from tests.kube.object_server import Fault, ObjectServer, serving_objects
from tests.waiting import until

from ..nodes import GOOD, MIB, SICK, announcement_of, node

NODE: Final = "/api/v1/nodes/n1"
PATCHES: Final = [("PATCH", NODE), ("PATCH", f"{NODE}/status")]


@dataclass
class Agent:
    server: ObjectServer
    announcing: NodeWriter
    log: io.StringIO
    rounds: Callable[[], int]

    @property
    def there(self) -> dict[str, Any]:
        return self.server.objects[NODE]

    def made(self) -> list[tuple[str, str]]:
        return [(call.method, call.path) for call in self.server.calls]

    def capacity(self) -> object:
        return self.there["status"]["capacity"].get(MIB)

    def somebody_writes(self, **status: Any) -> None:
        """The watch reports it."""
        self.server.put(NODE, {**self.there, "status": {**self.there["status"], **status}})
        self.announcing.observe(self.there)

    def events(self) -> list[tuple[str, str]]:
        found = [obj for path, obj in self.server.objects.items() if path.startswith(EVENTS_PATH)]
        return [(each["reason"], each["message"]) for each in found]

    async def rests(self) -> None:
        """Waits for one more round, which sends nothing if nothing is due."""
        for _ in range(2):
            begun = self.rounds()
            self.announcing.observe(self.there)
            await until(lambda begun=begun: self.rounds() > begun, what="a round")  # type: ignore[misc]


@asynccontextmanager
async def agent(there: dict[str, Any] | None = None) -> AsyncIterator[Agent]:
    log = io.StringIO()
    with serving_objects() as server:
        server.put(NODE, there or node())
        calls = ApiCalls(Access("127.0.0.1", server.port))
        looks: list[datetime] = []

        def now() -> datetime:
            """Each round reads the clock once, and rounds are a second apart."""
            looks.append(datetime.now(UTC) + timedelta(seconds=len(looks)))
            return looks[-1]

        announcing = NodeWriter(calls, "n1", Log(stream=log), now)
        running = asyncio.create_task(announcing.run())
        try:
            yield Agent(server, announcing, log, lambda: len(looks))
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            calls.close()


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deviceplugin.advertise.node_writer, "_PAUSE_S", 0.005)


async def test_a_node_is_current_after_two_calls_and_nothing_more_is_sent() -> None:
    async with agent() as one:
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(GOOD))
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        for _ in range(3):
            one.announcing.observe(one.there)
            one.announcing.announce(announcement_of(GOOD))
            await one.rests()
        assert one.made() == PATCHES
        kinds = [call.headers["Content-Type"] for call in one.server.calls]
        assert kinds == [MERGE_PATCH, STRATEGIC_MERGE_PATCH]
        assert [each["type"] for each in one.there["status"]["conditions"]] == ["Ready", names.CARDS_CONDITION]
        assert one.announcing.trouble == ""


async def test_only_differences_are_sent() -> None:
    async with agent() as one:
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(GOOD))
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        one.announcing.announce(announcement_of(GOOD, total=12000))
        await until(lambda: one.capacity() == "12000", what="the new total stands there")
        totals = {MIB: "12000"}
        assert json.loads(one.server.calls[-1].body) == {"status": {"capacity": totals, "allocatable": totals}}
        assert one.made() == [*PATCHES, PATCHES[1]]


async def test_nothing_is_sent_before_the_node_is_known() -> None:
    async with agent() as one:
        one.announcing.announce(announcement_of(GOOD))
        one.announcing.observe(None)
        await asyncio.sleep(0)
        assert one.made() == []
        one.announcing.observe(one.there)
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        assert one.made() == PATCHES


async def test_a_total_that_kubelet_removes_is_written_again() -> None:
    async with agent() as one:
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(GOOD))
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        one.somebody_writes(capacity={"cpu": "8", MIB: "0"})
        await until(lambda: one.capacity() == "15109", what="the total stands there again")


async def test_a_recreated_node_is_written_again() -> None:
    async with agent() as one:
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(GOOD))
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        one.announcing.observe(None)
        one.server.put(NODE, node())
        one.announcing.observe(one.there)
        await until(lambda: one.capacity() == "15109", what="the total stands there again")
        assert names.INVENTORY in one.there["metadata"]["annotations"]


async def test_a_late_watch_event_does_not_undo_a_newer_write() -> None:
    async with agent() as one:
        before = one.there
        one.announcing.observe(before)
        one.announcing.announce(announcement_of(GOOD))
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        one.announcing.observe(before)
        await one.rests()
        assert one.made() == PATCHES


FAULTS: Final[dict[str, list[Fault]]] = {
    "refused": ["refused", "refused"],
    "lost on the way there": ["unheard"],
    "lost on the way back": ["unanswered", "unanswered"],
    "half an answer": ["unended"],
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
async def test_a_write_is_retried_and_its_failure_logged_once(faults: list[Fault]) -> None:
    async with agent() as one:
        one.server.faults = list(faults)
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(GOOD))
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        await until(lambda: one.announcing.trouble == "", what="the trouble is over")
        assert 1 <= one.log.getvalue().count("node not written") <= len(faults)


async def test_a_forbidden_write_is_logged_with_the_api_servers_message() -> None:
    async with agent() as one:
        one.server.faults = ["refused"] * 1000
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(GOOD))
        await until(lambda: one.announcing.trouble != "", what="the trouble to be reported")
        assert one.announcing.trouble == f"the API server answered 500 to PATCH {NODE}: no leader"


async def test_writes_that_another_program_reverts_slow_down() -> None:
    async with agent() as one:
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(GOOD))
        begun = asyncio.get_running_loop().time()
        for _ in range(6):
            await until(lambda: one.capacity() == "15109", what="the total stands there")
            one.somebody_writes(capacity={"cpu": "8", MIB: "0"})
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        assert asyncio.get_running_loop().time() - begun > 0.005 * (1 + 2 + 4 + 8 + 16)
        one.announcing.announce(announcement_of(GOOD, total=1))
        await until(lambda: one.capacity() == "1", what="the new total stands there")


# --- events -----------------------------------------------------------------------------------------------------------


async def test_a_failed_and_a_recovered_card_give_one_event_each() -> None:
    async with agent() as one:
        well = replace(SICK, why_not="")
        one.announcing.observe(one.there)
        for card, count in ((well, 0), (SICK, 1), (well, 2)):
            one.announcing.announce(announcement_of(GOOD, card))
            await until(lambda count=count: len(one.events()) == count, what=f"{count} events")  # type: ignore[misc]
            await one.rests()
        assert [reason for reason, _ in one.events()] == ["CardFailed", "CardRecovered"]


async def test_a_restarted_agent_does_not_repeat_known_events() -> None:
    async with agent() as one:
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(SICK))
        await until(lambda: len(one.events()) == 1, what="the event about the failure")
        await one.rests()
        left_behind = one.there
    async with agent(left_behind) as another:
        another.announcing.observe(another.there)
        another.announcing.announce(announcement_of(SICK))
        await another.rests()
        assert another.events() == []


async def test_resources_that_are_not_advertised_and_foreign_values_give_events() -> None:
    async with agent(node(capacity={MIB: "4"})) as one:
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(GOOD), ["node_resources: got too many"])
        await until(lambda: len(one.events()) == 2, what="both events")
        assert one.events()[0] == ("NotOffered", "node_resources: got too many")
        assert one.events()[1][1].startswith('status.capacity["volcano.sh/gpu-memory"]: got "4", which another')
        assert len(one.announcing.foreign) == 1
        one.announcing.announce(announcement_of(GOOD), ["node_resources: got too many"])
        await one.rests()
        assert len(one.events()) == 2


async def test_a_resource_that_is_advertised_again_gives_an_event_each_time() -> None:
    async with agent() as one:
        one.announcing.observe(one.there)
        expected_events = []
        for problems in (["theirs"], [], ["theirs"], []):
            one.announcing.announce(announcement_of(GOOD), problems)
            expected_events.append(("NotOffered" if problems else "Offered", "theirs"))
            await until(lambda: len(one.events()) == len(expected_events), what="the event")
        assert sorted(one.events()) == sorted(expected_events)


async def test_an_event_whose_answer_was_lost_is_stored_once() -> None:
    async with agent() as one:
        one.server.faults = ["unanswered"]
        one.announcing.observe(one.there)
        one.announcing.announce(announcement_of(SICK))
        await until(lambda: one.capacity() == "15109", what="the total stands there")
        assert len(one.events()) == 1
        assert [call.method for call in one.server.calls] == ["POST", "POST", "PATCH", "PATCH"]
