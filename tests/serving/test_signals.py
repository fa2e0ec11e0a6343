from __future__ import annotations

import asyncio
import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from halfcard.exit_codes import EXIT_CANNOT_START
from serving.errors import CannotServeError
from serving.lifecycle import Lifecycle, Main, run
from serving.log import Log

ROOT = Path(__file__).parents[2]


@contextmanager
def program(*, grace_s: float) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
    command = [sys.executable, "-m", "tests.serving.program", str(grace_s)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def status(connection: http.client.HTTPConnection, path: str) -> int:
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    return response.status


@pytest.mark.parametrize("received", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_makes_it_unready_while_it_serves_and_then_it_exits_0(received: signal.Signals) -> None:
    with program(grace_s=0.4) as (process, ports):
        work, health = (http.client.HTTPConnection("127.0.0.1", ports[name]) for name in ("work", "status"))
        assert (status(health, "/readyz"), status(health, "/healthz"), status(work, "/")) == (200, 200, 200)
        process.send_signal(received)
        deadline = time.monotonic() + 5
        while status(health, "/readyz") != 503:
            assert time.monotonic() < deadline
        assert (status(work, "/"), status(health, "/healthz")) == (200, 200)
        assert process.wait(timeout=5) == 0
        work.close()
        health.close()


def test_a_second_signal_ends_it_at_once() -> None:
    with program(grace_s=60) as (process, _):
        assert process.stderr is not None
        process.terminate()
        while "stopping" not in process.stderr.readline():
            pass
        process.terminate()
        assert process.wait(timeout=5) == EXIT_CANNOT_START


async def refuse(_: Lifecycle) -> None:
    raise CannotServeError("listener work: port taken")


async def refuse_in_a_group(lifecycle: Lifecycle) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(refuse(lifecycle))


@pytest.mark.parametrize("main", [refuse, refuse_in_a_group])
@pytest.mark.usefixtures("root_handlers")
def test_a_reason_not_to_serve_is_one_log_line_and_exit_code_1(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(main, log=Log()) == EXIT_CANNOT_START
    assert json.loads(capsys.readouterr().err)["event"] == "listener work: port taken"


@pytest.mark.usefixtures("root_handlers")
def test_a_bug_is_not_hidden() -> None:
    async def main(_: Lifecycle) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main, log=Log())
