from __future__ import annotations

import ast
import asyncio
import io
import json
from pathlib import Path

import pytest

from serving.background_jobs import report_problems, run_in_background
from serving.log import Log
from tests.docs.pages import ROOT
from tests.to_add.tree import PRODUCT

_STARTERS = ("create_task", "ensure_future")


def unnamed(source: str) -> list[int]:
    """Returns the lines that start a task without a name; `ensure_future` cannot give it one."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    starts = [each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr in _STARTERS]
    return [each.lineno for each in starts if not any(keyword.arg == "name" for keyword in each.keywords)]


@pytest.mark.parametrize("package", PRODUCT)
def test_every_task_has_a_name(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    without = {str(file.relative_to(ROOT)): lines for file in files if (lines := unnamed(Path(file).read_text()))}
    assert not without


def test_a_task_without_a_name_is_found() -> None:
    assert unnamed("asyncio.create_task(f())\nloop.create_task(f(), name='x')\nasyncio.ensure_future(f())") == [1, 3]


async def test_a_job_runs_in_a_task_of_its_name() -> None:
    names: list[str] = []

    async def renew() -> None:
        task = asyncio.current_task()
        names.append(task.get_name() if task else "")

    async with run_in_background([("renew certificates", renew)], Log(stream=io.StringIO())):
        await asyncio.sleep(0)
    assert names == ["renew certificates"]


async def test_a_job_that_fails_is_logged_with_its_name_and_reason() -> None:
    failed = asyncio.Event()
    lines = io.StringIO()

    async def renew() -> None:
        failed.set()
        raise RuntimeError("disk on fire")

    async with run_in_background([("renew certificates", renew)], Log(stream=lines)):
        await failed.wait()
        await asyncio.sleep(0)

    event = json.loads(lines.getvalue())
    assert (event["event"], event["job"], event["restarts_in_s"]) == ("background job failed", "renew certificates", 1)
    assert "disk on fire" in event["trace"]


async def test_a_job_that_fails_is_restarted() -> None:
    starts: list[int] = []
    runs = asyncio.Event()

    async def admit() -> None:
        starts.append(len(starts))
        if len(starts) < 3:
            raise KeyError("a pod that was deleted")
        runs.set()
        await asyncio.Event().wait()

    jobs = [("admit gated pods", admit)]
    async with run_in_background(jobs, Log(stream=io.StringIO()), first_delay_s=0.001), asyncio.timeout(10):
        await runs.wait()
    assert starts == [0, 1, 2]


async def test_a_job_ends_with_its_context() -> None:
    ended: list[str] = []

    async def follow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("follow")

    async with run_in_background([("follow pods", follow)], Log(stream=io.StringIO())):
        await asyncio.sleep(0)
    assert ended == ["follow"]


async def test_a_problem_is_logged_when_it_begins() -> None:
    lines = io.StringIO()
    job = report_problems(lambda: ("nodes may be out of date: timeout",), Log(stream=lines))

    async with run_in_background([job], Log(stream=io.StringIO())):
        await asyncio.sleep(0)

    event = json.loads(lines.getvalue())
    assert (event["event"], event["problem"]) == ("source degraded", "nodes may be out of date: timeout")
