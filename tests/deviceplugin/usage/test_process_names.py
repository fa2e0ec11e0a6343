from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from deviceplugin.usage.process_names import ProcessNames, read_name
from halfcard.isolation.shared_files import process_name

_STAT: Final = "4711 (a ) b) S 1 4711 4711 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 55 0 0"


def test_a_process_is_named_by_the_pid_that_its_container_sees_and_its_start_time() -> None:
    assert read_name("Name:\ta\nNSpid:\t4711\t23\t7\n", _STAT) == process_name(7, 55)
    assert read_name("NSpid:\t4711\n", _STAT) == process_name(4711, 55)


@pytest.mark.parametrize(("status", "stat"), [("", _STAT), ("NSpid:\n", _STAT), ("NSpid:\t7\n", "7 (a) S 1"), ("", "")])
def test_files_without_a_name_give_none(status: str, stat: str) -> None:
    assert read_name(status, stat) == 0


def test_processes_are_named_from_the_kernels_files_and_ended_ones_have_no_name(tmp_path: Path) -> None:
    names = ProcessNames()
    (mine,) = names.of([os.getpid()]).values()
    assert mine and names.of([os.getpid()]) == {os.getpid(): mine}
    assert ProcessNames(tmp_path).of([os.getpid()]) == {}
