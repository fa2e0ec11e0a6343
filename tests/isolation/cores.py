"""Containers with shares of cores on the stand-in driver's cards, whose time is computed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from halfcard.isolation.shared_files import NO_LIMIT, CardControl, new_account, write_control

from .build import PRODUCT, TESTS, build
from .core_agent import OF_1000, CoreAgent
from .node import CARD_MIB, CARDS, DRIVER_FLAGS, DRIVER_SOURCES, share

PATIENCE_S: Final = 300
HERE: Final = '-DRUN_FOLDER="."'
"""Each program runs in the folder of its container, so one library serves all."""


class Load(NamedTuple):
    """What one process launches (load.c): kernels of these lengths in turn."""

    way: str
    ms: tuple[float, ...]
    card: int = 0

    def arguments(self, seconds: int) -> list[str]:
        return [str(seconds), str(self.card), self.way, *(str(round(each * 1e6)) for each in self.ms)]


class Held(NamedTuple):
    """One container: its share and ceiling in per cent of each card, and its processes."""

    share: int
    loads: tuple[Load, ...]
    ceiling: int | None = None

    def controls(self) -> list[CardControl]:
        ceiling = NO_LIMIT if self.ceiling is None else self.ceiling * 10
        return [share(card, CARD_MIB)._replace(share=self.share * 10, ceiling=ceiling) for card in range(CARDS)]


class CoresNode:
    """The node's programs, built once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "driver").mkdir(parents=True)
        build(folder / "made.so", DRIVER_SOURCES, HERE, "-O2", *DRIVER_FLAGS)
        (folder / "made.so").rename(folder / "driver" / "libcuda.so.1")
        self._cards = _written(build(folder / "make_cards", ["make_cards.c", "card.c", "process.c"]), str(CARD_MIB))
        self._make_gpu = build(folder / "make_gpu", ["make_gpu.c", "gpu.c"])
        self._load = build(folder / "load", ["load.c"])
        self._seconds = build(folder / "seconds", ["seconds.c"])
        make = ["make", "-s", "-C", str(PRODUCT), "RUN_FOLDER=.", f"OUT={folder}/library"]
        subprocess.run([*make, f"CLOCK={TESTS}/virtual_clock.c", f"CFLAGS=-O2 -g -I{PRODUCT}"], check=True)

    def used(self, scratch: Path, *containers: Held, seconds: int, agent_s: int) -> list[list[list[int]]]:
        """Returns the 1/1000 of a card in use, by card, process and second; the agent ends after some seconds."""
        folders = [self._container(scratch / str(at), each) for at, each in enumerate(containers)]
        processes = [(folder, load) for folder, held in zip(folders, containers, strict=True) for load in held.loads]
        world = _written(self._make_gpu, str(len(processes) + 1))
        (scratch / "gpu").write_bytes(world)
        clock = [str(self._seconds), str(seconds), str(len(processes))]
        with ExitStack() as stack:
            started = [
                self._start(stack, folder, at, [str(self._load), *load.arguments(seconds)])
                for at, (folder, load) in enumerate(processes)
            ]
            started.append(self._start(stack, folders[0], len(processes), clock))
            agent = CoreAgent(scratch)
            rows = []
            for second in range(seconds):
                now_ns, *used = map(int, _line(started[-1]).split())
                rows.append(used)
                if second < agent_s:
                    agent.measure(_by_container(used, [folder.name for folder, _ in processes]), now_ns)
                _go_on(started[-1])
            assert [each.wait(PATIENCE_S) for each in started] == [0] * len(started)
        return _by_card(rows, len(processes))

    def _container(self, folder: Path, held: Held) -> Path:
        folder.mkdir()
        (folder / "driver").symlink_to(self._folder / "driver")
        (folder / "gpu").symlink_to("../gpu")
        (folder / "cards").write_bytes(self._cards)
        (folder / "account").write_bytes(new_account())
        (folder / "control").write_bytes(write_control(held.controls()))
        return folder

    def _start(self, stack: ExitStack, folder: Path, member: int, command: Sequence[str]) -> subprocess.Popen[bytes]:
        variables = {"LD_LIBRARY_PATH": str(self._folder / "library"), "STAND_IN_MEMBER": str(member)}
        pipe = subprocess.PIPE
        started = subprocess.Popen(command, cwd=folder, env=os.environ | variables, stdin=pipe, stdout=pipe)
        stack.enter_context(started)
        stack.callback(started.kill)  # first: where one process has failed, the others wait for it
        return started


def _written(program: Path, *arguments: str) -> bytes:
    return subprocess.run([str(program), *arguments], capture_output=True, check=True).stdout


def _line(clock: subprocess.Popen[bytes]) -> str:
    assert clock.stdout is not None
    return clock.stdout.readline().decode()


def _go_on(clock: subprocess.Popen[bytes]) -> None:
    assert clock.stdin is not None
    clock.stdin.write(b"\n")
    clock.stdin.flush()


def _by_container(used: Sequence[int], names: Sequence[str]) -> dict[str, list[int]]:
    """Adds up the whole per cents of the processes of each container, by card."""
    found = {name: [0] * CARDS for name in names}
    for at, thousandths in enumerate(used):
        found[names[at % len(names)]][at // len(names)] += thousandths // OF_1000
    return found


def _by_card(rows: list[list[int]], processes: int) -> list[list[list[int]]]:
    columns = [list(column) for column in zip(*rows, strict=True)]
    return [columns[at : at + processes] for at in range(0, len(columns), processes)]
