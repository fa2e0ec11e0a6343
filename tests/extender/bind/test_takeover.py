"""Who comes to lead sees every bind of the one before, or keeps it from ever being done: no card is given twice."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Literal, get_args

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.bind.binder import NotBound, NotLeading
from extender.bind.takeover import Takeover, TakeoverError
from halfcard import names
from tests.builders import pod

from ..pod_server import Call, PodServer, serving_pods
from .test_binder import Replica, manifest, recorded, writes

Story = Callable[[PodServer, Replica, Replica], Awaitable[None]]


def takeover(replica: Replica, refresh: Callable[[], Awaitable[None]]) -> Takeover:
    return Takeover(replica.state, replica.calls, refresh, replica.binder.next_fence, replica.binder.budgets)


async def take_over(replica: Replica) -> None:
    async def refresh() -> None:
        replica.see_all()

    await takeover(replica, refresh).run()


def tell(story: Story) -> None:
    """Of pod p, the replica that led and has not heard that it does not any more, and the next one."""

    async def run() -> None:
        with serving_pods() as server:
            server.put(manifest("p"))
            old, new = Replica(server), Replica(server, "second")
            old.see_all()
            new.see_all()
            try:
                await story(server, old, new)
            finally:
                old.calls.close()
                new.calls.close()

    uvloop.run(run())


def test_every_pod_that_asks_for_cards_and_has_no_node_is_marked() -> None:
    async def story(server: PodServer, _: Replica, new: Replica) -> None:
        server.put(manifest("q"))
        server.put(manifest("plain", pod().asks(cpu="1")))
        server.put(manifest("bound") | {"spec": {**manifest("bound")["spec"], "nodeName": "n1"}})
        await take_over(new)
        fences = [server.annotations(name).get(names.FENCE, "") for name in ("p", "q", "plain", "bound")]
        assert fences[0] != fences[1]
        assert [fence.startswith("second-") for fence in fences] == [True, True, False, False]
        assert new.cores_free() == [50, 100]

    tell(story)


def test_a_bind_that_arrives_after_the_mark_is_not_done() -> None:
    async def story(server: PodServer, old: Replica, new: Replica) -> None:
        server.faults = ["held"]
        late = asyncio.create_task(old.bind("p"))
        await server.somebody_is_held()
        await take_over(new)
        old.leads = False
        server.release.set()
        with pytest.raises(NotLeading):
            await late
        assert server.node("p") == ""
        assert old.cores_free() == [100, 100]
        await new.bind("p", "n2")
        assert server.node("p") == "n2"

    tell(story)


def test_a_bind_that_arrives_between_the_list_and_the_mark_is_seen() -> None:
    async def story(server: PodServer, old: Replica, new: Replica) -> None:
        async def refresh() -> None:
            new.see_all()
            await old.bind("p")

        await takeover(new, refresh).run()
        assert server.node("p") == "n1"
        assert new.cores_free() == [50, 100]
        await new.bind("p")
        assert writes(server).count("binding") == 1

    tell(story)


def test_a_promise_of_an_earlier_term_is_no_more_than_a_hope() -> None:
    """It lost its lead while the API server was silent, and leads again."""

    async def story(server: PodServer, old: Replica, _: Replica) -> None:
        facts = old.state.pod("uid-p")
        assert facts is not None
        server.faults = ["held"]
        late = asyncio.create_task(old.bind("p"))
        await server.somebody_is_held()
        assert old.cores_free() == [50, 100]
        old.term = "third"
        await take_over(old)
        assert old.cores_free() == [100, 100]
        server.release.set()
        await late
        assert server.node("p") == "n1"
        assert old.cores_free() == [50, 100]

    tell(story)


@pytest.mark.parametrize("gone", ["deleted", "replaced"])
def test_a_pod_that_is_gone_needs_no_mark(gone: str) -> None:
    async def story(server: PodServer, _: Replica, new: Replica) -> None:
        async def refresh() -> None:
            new.see_all()
            if gone == "deleted":
                del server.pods["p"]
            else:
                server.put(manifest("p", uid="another"))

        await takeover(new, refresh).run()

    tell(story)


def test_where_a_pod_cannot_be_marked_the_lead_is_not_taken() -> None:
    async def story(server: PodServer, _: Replica, new: Replica) -> None:
        server.faults = ["refused"]
        with pytest.raises(ExceptionGroup) as failed:
            await take_over(new)
        assert failed.group_contains(TakeoverError, match="pod team/p could not be fenced: 500")

    tell(story)


# --- the law ----------------------------------------------------------------------------------------------------------

Moment = Literal["before the list", "after the list", "after the marks", "at the end", "never"]


@settings(max_examples=30)
@given(
    pods=st.integers(1, 5),
    late=st.lists(st.sampled_from(get_args(Moment)), min_size=1, max_size=3),
    order=st.permutations(range(5)),
)
def test_two_leaders_never_give_a_card_twice(pods: int, late: list[Moment], order: list[int]) -> None:
    """The old one's requests are on their way and arrive at any moment, or never; the new one binds all it can."""

    async def story(server: PodServer) -> None:
        chosen = [f"p{number}" for number in range(pods)]
        for name in chosen:
            server.put(manifest(name, pod().asks(core="60", memory="20")))
        new = Replica(server, "second")
        sent = [(moment, call) for moment, call in zip(late, await _on_their_way(server, chosen), strict=False)]

        def arrive(now: Moment) -> None:
            for moment, call in sent:
                if moment == now:
                    server.carry_out(call)

        async def refresh() -> None:
            arrive("before the list")
            new.see_all()
            arrive("after the list")

        await takeover(new, refresh).run()
        arrive("after the marks")
        for name in [chosen[number] for number in order if number < pods]:
            try:
                await new.bind(name)
            except NotBound:
                assert max(new.cores_free()) < 60, "it had a card left"
        arrive("at the end")
        cards = [card for name in chosen if server.node(name) for card in recorded(server, name)]
        assert len(cards) == len(set(cards)) == min(pods, 2)
        new.calls.close()

    async def run() -> None:
        with serving_pods() as server:
            await story(server)

    uvloop.run(run())


async def _on_their_way(server: PodServer, chosen: list[str]) -> list[Call]:
    """What a leader sends that sees the same pods; none of it has arrived."""
    with serving_pods() as elsewhere:
        elsewhere.pods = copy.deepcopy(server.pods)
        old = Replica(elsewhere)
        old.see_all()
        for name in chosen[:2]:
            await old.bind(name)
        old.calls.close()
        return [call for call in elsewhere.calls if call.is_binding]
