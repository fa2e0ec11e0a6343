from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs.folder.folder_renewal import FolderRenewal
from certs.lifetimes import LEAF_LIFE
from certs.server_names import server_names
from serving.log import Log

START = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = server_names(["halfcard.svc"])


class Lines(Log):
    def __init__(self) -> None:
        self._written = io.StringIO()
        super().__init__(stream=self._written)

    @property
    def lines(self) -> list[str]:
        found = map(json.loads, self._written.getvalue().splitlines())
        return [f"{line['event']}: {line['reason']}" for line in found]


class WallClock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


async def until_logged(log: Lines, lines: int) -> None:
    async with asyncio.timeout(10):
        while len(log.lines) < lines:  # noqa: ASYNC110 - the log of this test sends no signal
            await asyncio.sleep(0.001)


async def test_a_machine_that_was_suspended_for_months_renews_at_its_next_check(tmp_path: Path) -> None:
    log, clock = Lines(), WallClock()
    renewal = FolderRenewal(tmp_path, NAMES, log=log, clock=clock, every_s=0.001)
    task = asyncio.create_task(renewal.run())
    await until_logged(log, 1)
    clock.now = START + LEAF_LIFE
    await until_logged(log, 2)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert [line.split(";")[0] for line in log.lines] == [
        "certificates renewed: ca.crt is missing",
        "certificates renewed: the leaf expired at 2026-05-30T00:00:00Z",
    ]


def test_a_failure_is_logged_once_and_tried_again(tmp_path: Path) -> None:
    log = Lines()
    renewal = FolderRenewal(tmp_path, NAMES, log=log, clock=WallClock())
    tmp_path.chmod(0o777)

    renewal.check()
    renewal.check()
    assert len(log.lines) == 1 and "got mode 0777" in log.lines[0]

    tmp_path.chmod(0o700)
    renewal.check()
    assert len(log.lines) == 2 and (tmp_path / "tls.crt").exists()


def test_a_failure_that_comes_back_is_logged_again(tmp_path: Path) -> None:
    log, clock = Lines(), WallClock()
    renewal = FolderRenewal(tmp_path, NAMES, log=log, clock=clock)

    for mode in (0o777, 0o700, 0o777):
        tmp_path.chmod(mode)
        clock.now += timedelta(minutes=1)
        renewal.check()

    assert [line.split(":")[0] for line in log.lines] == [
        "certificates not renewed",
        "certificates renewed",
        "certificates not renewed",
    ]
