"""A name of a process is used once, and tells whether the process has ended: of real processes and texts of /proc."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from .build import build

EXIT: Final = {"x86_64": 60, "aarch64": 93}[platform.machine()]
STAT: Final = "{pid} ({name}) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 {start} 0 0 0 0 0 {stack} 0 0\n"
"""The fields of /proc/PID/stat up to those that are read."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    found = ctypes.CDLL(str(build(tmp_path_factory.mktemp("process") / "process.so", ["process.c"])))
    found.process_of_stat.restype = found.process_self.restype = ctypes.c_uint64
    found.process_is_gone.argtypes = [ctypes.c_uint64]
    return found


def stat(
    *, pid: int = 7, name: str = "train", state: str = "S", threads: int = 1, start: int = 5, stack: int = 160
) -> bytes:
    return STAT.format(pid=pid, name=name, state=state, threads=threads, start=start, stack=stack).encode()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(stat(name="a b"), id="a name with a space"),
        pytest.param(stat(name=") Z 1 (x"), id="a name that looks like fields"),
        pytest.param(stat(state="Z", threads=2), id="the first thread has ended, another lives"),
        pytest.param(stat(state="T"), id="stopped"),
        pytest.param(stat(state="D"), id="waiting for a device"),
    ],
)
def test_a_process_is_named_by_pid_start_and_program(library: ctypes.CDLL, text: bytes) -> None:
    assert library.process_of_stat(text) == 7 << 42 | 5 << 16 | 10


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(stat(state="Z"), id="zombie"),
        pytest.param(stat(state="X", threads=2), id="dead"),
        pytest.param(b"", id="empty"),
        pytest.param(b"7 (train", id="cut in the name"),
        pytest.param(b"7 (train)", id="cut after the name"),
    ],
)
def test_a_process_that_has_ended_has_no_name(library: ctypes.CDLL, text: bytes) -> None:
    assert library.process_of_stat(text) == 0


def test_names_differ_by_start_and_by_program(library: ctypes.CDLL) -> None:
    texts = [stat(), stat(start=6), stat(stack=176), stat(pid=8), stat(stack=0)]
    assert len({library.process_of_stat(text) for text in texts}) == len(texts)


def test_a_stack_that_mixes_to_zero_is_known_all_the_same(library: ctypes.CDLL) -> None:
    assert library.process_of_stat(stat(stack=(1 << 20) | (1 << 4))) & 0xFFFF == 1


# --- real processes


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def name_of(library: ctypes.CDLL, pid: int) -> int:
    return int(library.process_of_stat(Path(f"/proc/{pid}/stat").read_bytes()))


def _soon(condition: Callable[[], bool]) -> bool:
    return any(condition() for _ in range(1_000_000))


def test_a_process_is_gone_as_soon_as_it_is_a_zombie(library: ctypes.CDLL) -> None:
    with running("sh", "-c", "echo ready; read line") as process:
        name = name_of(library, process.pid)
        assert library.process_is_gone(name) == 0
        process.kill()
        assert _soon(lambda: library.process_is_gone(name))
        assert Path(f"/proc/{process.pid}").exists()
    assert library.process_is_gone(name)


def test_a_process_that_executes_another_program_is_gone(library: ctypes.CDLL) -> None:
    with running("sh", "-c", "echo ready; read line; exec sh -c 'echo ready; read line'") as process:
        name = name_of(library, process.pid)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        assert library.process_is_gone(name)
        assert name_of(library, process.pid) >> 16 == name >> 16


def test_a_process_whose_first_thread_has_ended_lives(library: ctypes.CDLL) -> None:
    code = (
        "import ctypes, threading, sys; threading.Thread(target=sys.stdin.readline).start()\n"
        "print('ready', flush=True)\n"
        f"ctypes.CDLL(None).syscall({EXIT}, 0)"  # ends this thread alone
    )
    with running(sys.executable, "-c", code) as process:
        assert _soon(lambda: ") Z " in Path(f"/proc/{process.pid}/stat").read_text())
        assert library.process_is_gone(name_of(library, process.pid)) == 0


def test_a_name_of_an_earlier_process_with_this_pid_is_gone(library: ctypes.CDLL) -> None:
    assert library.process_is_gone(library.process_self()) == 0
    assert library.process_is_gone(library.process_self() ^ 1 << 16)


def test_an_unknown_program_counts_as_the_same(library: ctypes.CDLL) -> None:
    assert library.process_is_gone(library.process_self() & ~0xFFFF) == 0
