from __future__ import annotations

import asyncio
import io

from serving.background_jobs import beside
from serving.log import Log


def test_a_background_job_that_dies_is_in_the_log_with_its_reason() -> None:
    died = asyncio.Event()

    async def keep_certificates() -> None:
        died.set()
        raise RuntimeError("disk on fire")

    async def serve(log: Log) -> None:
        async with beside([keep_certificates], log):
            await died.wait()
            await asyncio.sleep(0)

    lines = io.StringIO()
    asyncio.run(serve(Log(stream=lines)))

    assert "keep_certificates" in lines.getvalue()
    assert "disk on fire" in lines.getvalue()


async def test_a_job_that_fails_begins_anew() -> None:
    begun: list[int] = []
    going = asyncio.Event()

    async def open_gates() -> None:
        begun.append(len(begun))
        if len(begun) < 3:
            raise KeyError("a pod that has just gone")
        going.set()
        await asyncio.Event().wait()

    async with beside([open_gates], Log(stream=io.StringIO()), soon_s=0.001), asyncio.timeout(10):
        await going.wait()
    assert begun == [0, 1, 2]


async def test_a_job_ends_with_what_it_runs_beside() -> None:
    ended: list[str] = []

    async def follow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("follow")

    async with beside([follow], Log(stream=io.StringIO())):
        await asyncio.sleep(0)
    assert ended == ["follow"]
