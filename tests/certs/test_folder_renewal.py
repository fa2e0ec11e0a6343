from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs.folder_renewal import FolderRenewal
from certs.lifetimes import LEAF_LIFE
from certs.server_names import server_names

START = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = server_names(["halfcard.svc"])


class Lines:
    """A log that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def event(self, text: str, /, **fields: object) -> None:
        self.lines.append(f"{text}: {fields['reason']}")

    error = event


class WallClock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


async def until(folder: Path, keeper: FolderRenewal, moment: datetime) -> None:
    async with asyncio.timeout(10):
        while keeper.last_succeeded != moment:  # noqa: ASYNC110 - the keeper signals nobody
            await asyncio.sleep(0.001)
    assert (folder / "tls.crt").exists()


async def test_a_machine_that_was_suspended_for_months_renews_at_its_next_look(tmp_path: Path) -> None:
    log, clock = Lines(), WallClock()
    keeper = FolderRenewal(tmp_path, NAMES, log=log, clock=clock, every_s=0.001)
    task = asyncio.create_task(keeper.run())
    await until(tmp_path, keeper, START)
    clock.now = START + LEAF_LIFE
    await until(tmp_path, keeper, clock.now)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert [line.split(";")[0] for line in log.lines] == [
        "certificates renewed: ca.crt is missing",
        "certificates renewed: the leaf expired at 2026-05-30T00:00:00Z",
    ]


def test_a_failure_is_said_once_and_tried_again(tmp_path: Path) -> None:
    log = Lines()
    keeper = FolderRenewal(tmp_path, NAMES, log=log, clock=WallClock())
    tmp_path.chmod(0o777)

    keeper.look()
    keeper.look()
    assert keeper.last_succeeded is None
    assert len(log.lines) == 1 and "got mode 0777" in log.lines[0]

    tmp_path.chmod(0o700)
    keeper.look()
    assert keeper.last_succeeded == START
    assert len(log.lines) == 2


def test_a_failure_that_comes_back_is_said_again(tmp_path: Path) -> None:
    log, clock = Lines(), WallClock()
    keeper = FolderRenewal(tmp_path, NAMES, log=log, clock=clock)

    for mode in (0o777, 0o700, 0o777):
        tmp_path.chmod(mode)
        clock.now += timedelta(minutes=1)
        keeper.look()

    assert [line.split(":")[0] for line in log.lines] == [
        "certificates not renewed",
        "certificates renewed",
        "certificates not renewed",
    ]
