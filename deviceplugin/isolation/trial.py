"""Tries on the node whether the isolation libraries hold a program, over the driver that containers get.

The agent has no right to make a mount namespace, and needs none: the libraries look for the driver and for the two
files in the run folder, which a container and the agent have at the same path.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

from halfcard import names
from halfcard.isolation.shared_files import CardControl

from .driver_files import TrialSubject
from .share_files import ShareFiles

WITHIN_S: Final = 20.0
"""A driver that no program keeps awake takes seconds to start."""

_SHARE_MIB: Final = 64
_KILLED_WITHIN_S: Final = 1.0
_PROGRAM: Final = "deviceplugin.isolation.trial_program"
_MOST_CHARS: Final = 300


class Trial:
    """Runs one program at a time; `run` is the folder in which the libraries look for their files."""

    def __init__(self, run: Path, within_s: float = WITHIN_S) -> None:
        self._run = run
        self._within_s = within_s
        self._process: asyncio.subprocess.Process | None = None

    async def __call__(self, subject: TrialSubject, card: str) -> str:
        """Returns why the libraries do not hold a program on this card; empty where they do."""
        if self._process is not None and self._process.returncode is None:
            return "the driver still does not answer an earlier trial; check it on the node (`nvidia-smi`)"
        try:
            self._arrange(subject, card)
            return await self._outcome(subject, card)
        except (OSError, ValueError) as error:
            return f"the isolation libraries cannot be tried: {error}"

    def _arrange(self, subject: TrialSubject, card: str) -> None:
        """Puts everything where a container has it."""
        uuid = UUID(card.removeprefix("GPU-")).bytes
        ShareFiles(self._run.parent).write(self._run.name, [CardControl(uuid, memory=_SHARE_MIB << 20)])
        (self._run / "driver").mkdir(mode=0o755, exist_ok=True)
        for library, file in subject.driver:
            link = self._run / "driver" / library
            link.unlink(missing_ok=True)
            link.symlink_to(file)

    async def _outcome(self, subject: TrialSubject, card: str) -> str:
        libraries = [library for library, _ in subject.driver]
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", _PROGRAM, card, str(_SHARE_MIB), *libraries),
            env=_environment(subject, card),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(self._within_s):
                said, _ = await process.communicate()
        except TimeoutError:
            return f"the driver did not answer a trial within {self._within_s:.0f} s; check it (`nvidia-smi`)"
        finally:
            await self._end(process)
        return _why(said.decode(errors="replace").strip(), process.returncode or 0)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Kills the program; one that hangs within the driver stays until the driver answers."""
        if process.returncode is None:
            process.kill()
            with suppress(TimeoutError):
                async with asyncio.timeout(_KILLED_WITHIN_S):
                    await process.wait()


def _environment(subject: TrialSubject, card: str) -> Mapping[str, str]:
    paths = [str(subject.libraries), *filter(None, [os.environ.get(names.LIBRARY_PATH)])]
    return {**os.environ, names.LIBRARY_PATH: ":".join(paths), "CUDA_VISIBLE_DEVICES": card}


def _why(said: str, status: int) -> str:
    if status < 0:
        return f"a program with the isolation libraries was ended by signal {-status} in a trial"
    return said[-_MOST_CHARS:] or (f"a trial ended with status {status}" if status else "")
