from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from serving.large_bodies import LARGE_BYTES, PLACES, LargeBodies, is_large
from serving.request_body import RefusedRequest

LARGE, SMALL = b"x" * LARGE_BYTES, b"x"


def scope(body: bytes | None, query: bytes = b"") -> Any:
    length = [] if body is None else [(b"content-length", b"%d" % len(body))]
    return {"headers": length, "query_string": query}


async def one(queue: LargeBodies, body: bytes, done: list[bytes]) -> None:
    if not is_large(scope(body)):
        done.append(body)
        return
    async with queue.place(scope(body)):
        await queue.turn()
        done.append(body)


async def test_a_small_body_passes_all_large_ones_that_wait() -> None:
    queue, done = LargeBodies(), list[bytes]()
    larges = [asyncio.create_task(one(queue, LARGE, done)) for _ in range(3 * PLACES)]
    await asyncio.sleep(0)
    small = asyncio.create_task(one(queue, SMALL, done))
    await asyncio.gather(*larges, small)
    assert done.index(SMALL) <= 1
    assert len(done) == 3 * PLACES + 1


async def test_between_two_large_bodies_small_ones_are_served() -> None:
    """Each large body, once decided, lets a small one arrive; it is served before the next large one."""
    queue, done = LargeBodies(), list[bytes]()

    async def large() -> None:
        async with queue.place(scope(LARGE)):
            await queue.turn()
            done.append(LARGE)
            smalls.append(asyncio.create_task(one(queue, SMALL, done)))

    smalls: list[asyncio.Task[None]] = []
    await asyncio.gather(*(large() for _ in range(6)))
    await asyncio.gather(*smalls)
    assert done == [LARGE, SMALL] * 6


@pytest.mark.parametrize("sent", [LARGE, None])
async def test_only_some_large_bodies_are_in_memory_and_the_others_wait_as_long_as_their_callers(
    sent: bytes | None,
) -> None:
    """A body without a length may become large."""
    queue = LargeBodies()
    async with AsyncExitStack() as taken:
        for _ in range(PLACES):
            await taken.enter_async_context(queue.place(scope(sent)))
        with pytest.raises(RefusedRequest) as refused:
            async with queue.place(scope(sent, b"timeout=0.01s")):
                pass
    assert (refused.value.status, str(refused.value)) == (429, "other large requests took 0.01 s; try again")


async def test_a_request_that_fails_leaves_its_place() -> None:
    queue = LargeBodies()
    for _ in range(2 * PLACES):
        with pytest.raises(ZeroDivisionError):
            async with queue.place(scope(LARGE)):
                raise ZeroDivisionError


@pytest.mark.parametrize(
    ("length", "is_queued"),
    [(b"4000", False), (b"131071", False), (b"131072", True), (b"9" * 30, True), (b"-1", True), (b"x", True)],
)
def test_what_counts_as_large(length: bytes, *, is_queued: bool) -> None:
    assert is_large({"headers": [(b"content-length", length)]}) is is_queued
    assert is_large({"headers": []})
