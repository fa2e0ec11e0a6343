"""A new leader sees every bind of the previous one or makes it fail: no card is granted twice."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.bind.binder import NotBound, NotLeading
from extender.bind.takeover import Takeover, TakeoverError
from halfcard import names
from tests.builders import pod

from ..pod_server import Call, PodServer, serving_pods
from .test_binder import Replica, manifest, recorded, writes


def takeover(replica: Replica, refresh: Callable[[], Awaitable[None]]) -> Takeover:
    return Takeover(replica.state, replica.calls, refresh, replica.binder.next_fence, replica.binder.budgets)


async def take_over(replica: Replica) -> None:
    async def refresh() -> None:
        replica.see_all()

    await takeover(replica, refresh).run()


@pytest.fixture
def server() -> Iterator[PodServer]:
    with serving_pods() as server:
        server.put(manifest("p"))
        yield server


@pytest.fixture
async def old(server: PodServer) -> AsyncIterator[Replica]:
    """The replica that led, and does not know yet that it leads no more."""
    replica = Replica(server)
    replica.see_all()
    yield replica
    replica.calls.close()


@pytest.fixture
async def new(server: PodServer) -> AsyncIterator[Replica]:
    replica = Replica(server, "second")
    replica.see_all()
    yield replica
    replica.calls.close()


async def test_every_pod_with_claims_and_without_a_node_is_fenced(server: PodServer, new: Replica) -> None:
    server.put(manifest("q"))
    server.put(manifest("plain", pod().asks(cpu="1")))
    server.put(manifest("bound") | {"spec": {**manifest("bound")["spec"], "nodeName": "n1"}})
    await take_over(new)
    fences = [server.annotations(name).get(names.FENCE, "") for name in ("p", "q", "plain", "bound")]
    assert fences[0] != fences[1]
    assert [fence.startswith("second-") for fence in fences] == [True, True, False, False]
    assert new.cores_free() == [50, 100]


async def test_a_bind_that_arrives_after_the_fence_fails(server: PodServer, old: Replica, new: Replica) -> None:
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


async def test_a_bind_that_arrives_between_the_list_and_the_fence_is_seen(
    server: PodServer, old: Replica, new: Replica
) -> None:
    async def refresh() -> None:
        new.see_all()
        await old.bind("p")

    await takeover(new, refresh).run()
    assert server.node("p") == "n1"
    assert new.cores_free() == [50, 100]
    await new.bind("p")
    assert writes(server).count("binding") == 1


async def test_an_assumption_of_an_earlier_term_is_forgotten_where_the_pod_has_no_node(
    server: PodServer, old: Replica
) -> None:
    """It lost its lead while the API server was silent, and leads again."""
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


@pytest.mark.parametrize("gone", ["deleted", "replaced"])
async def test_a_deleted_pod_needs_no_fence(gone: str, server: PodServer, new: Replica) -> None:
    async def refresh() -> None:
        new.see_all()
        if gone == "deleted":
            del server.pods["p"]
        else:
            server.put(manifest("p", uid="another"))

    await takeover(new, refresh).run()


async def test_a_takeover_fails_where_a_pod_cannot_be_fenced(server: PodServer, new: Replica) -> None:
    server.faults = ["refused"]
    with pytest.raises(ExceptionGroup) as failed:
        await take_over(new)
    assert failed.group_contains(TakeoverError, match="pod team/p could not be fenced: 500")


# --- the law ----------------------------------------------------------------------------------------------------------

Moment = Literal["before the list", "after the list", "after the marks", "at the end", "never"]


@settings(max_examples=30)
@given(
    pods=st.integers(1, 5),
    late=st.lists(st.sampled_from(get_args(Moment)), min_size=1, max_size=3),
    order=st.permutations(range(5)),
)
async def test_two_leaders_never_grant_a_card_twice(pods: int, late: list[Moment], order: list[int]) -> None:
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

    with serving_pods() as server:
        await story(server)


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
