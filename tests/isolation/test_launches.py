"""Each function that launches is held and measured where the container has a share of cores, and only there."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import pytest

from .node import Driver, Program, share

ONCE: Final = (1, 1, 1, 1, 1, 1, 0)
CONFIGURED: Final = struct.pack("=7I4xQ24x", *ONCE, 0)
FUNCTION: Final = 5000
LAUNCHES: Final = {
    "cuLaunchKernel": (FUNCTION, *ONCE, 0, 0, 0),
    "cuLaunchKernel_ptsz": (FUNCTION, *ONCE, 0, 0, 0),
    "cuLaunchKernelEx": (CONFIGURED, FUNCTION, 0, 0),
    "cuLaunchKernelEx_ptsz": (CONFIGURED, FUNCTION, 0, 0),
    "cuLaunchCooperativeKernel": (FUNCTION, *ONCE, 0, 0),
    "cuLaunchCooperativeKernel_ptsz": (FUNCTION, *ONCE, 0, 0),
    "cuLaunchCooperativeKernelMultiDevice": (struct.pack("=Q", FUNCTION) + CONFIGURED, 1, 0),
    "cuLaunch": (FUNCTION,),
    "cuLaunchGrid": (FUNCTION, 1, 1),
    "cuLaunchGridAsync": (FUNCTION, 1, 1, 0),
}
EVENTS_OF_A_MEASUREMENT: Final = 2


@pytest.fixture
def program(driver: Driver) -> Iterator[Program]:
    with driver.container(share(0)._replace(share=300)).program() as found:
        yield found


def events(program: Program) -> int:
    return program.get("standInEvents", None)


@pytest.mark.parametrize("name", LAUNCHES)
def test_each_launch_is_measured(program: Program, name: str) -> None:
    program.get(name, *LAUNCHES[name])
    assert events(program) == EVENTS_OF_A_MEASUREMENT


@pytest.mark.parametrize("name", ["cuGraphLaunch", "cuGraphLaunch_ptsz"])
def test_each_launch_of_a_graph_is_measured(program: Program, name: str) -> None:
    program.get(name, program.get("cuGraphCreate", None, 0), 0)
    assert events(program) == EVENTS_OF_A_MEASUREMENT


@pytest.mark.parametrize("name", ["cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel"])
def test_what_a_stream_captures_is_neither_held_nor_measured(program: Program, name: str) -> None:
    stream = program.get("cuStreamCreate", None, 0)
    program.get("cuStreamBeginCapture_v2", stream, 0)
    configured = struct.pack("=7I4xQ24x", *ONCE, stream)
    captured = {"cuLaunchKernel": 8, "cuLaunchCooperativeKernel": 8}
    arguments: list[int | bytes] = [configured if one == CONFIGURED else one for one in LAUNCHES[name]]
    if name in captured:
        arguments[captured[name]] = stream
    program.get(name, *arguments)
    assert events(program) == 0


def test_measuring_other_streams_leaves_a_capture_alone(program: Program) -> None:
    captured, other = (program.get("cuStreamCreate", None, 0) for _ in range(2))
    program.get("cuStreamBeginCapture_v2", captured, 0)
    for _ in range(2):
        program.get("cuLaunchKernel", FUNCTION, *ONCE, other, 0, 0)
    assert events(program) == 2 * EVENTS_OF_A_MEASUREMENT
    program.get("cuStreamEndCapture", captured, None)


def test_the_mode_of_captures_that_a_thread_chose_is_left_to_it(program: Program) -> None:
    thread_local = struct.pack("=i", 1)
    program.get("cuThreadExchangeStreamCaptureMode", thread_local)
    program.get("cuLaunchKernel", *LAUNCHES["cuLaunchKernel"])
    program.get("cuStreamBeginCapture_v2", captured := program.get("cuStreamCreate", None, 0), 0)
    assert program.error("cuEventQuery", 1) == 900
    assert program.error("cuStreamEndCapture", captured, None) == 901


def test_a_known_short_kernel_is_measured_each_64th_time(program: Program) -> None:
    for _ in range(1 + 2 * 64):
        program.get("cuLaunchKernel", *LAUNCHES["cuLaunchKernel"])
    assert events(program) == (4 + 2) * EVENTS_OF_A_MEASUREMENT


def test_a_context_that_ends_takes_its_events_with_it(program: Program) -> None:
    context = program.get("cuCtxCreate_v2", None, 0, 0)
    program.get("cuLaunchKernel", *LAUNCHES["cuLaunchKernel"])
    program.get("cuCtxDestroy_v2", context)
    program.get("cuCtxCreate_v2", None, 0, 0)
    program.get("cuLaunchKernel", *LAUNCHES["cuLaunchKernel"])
    assert events(program) == 2 * EVENTS_OF_A_MEASUREMENT


@pytest.mark.parametrize("name", LAUNCHES)
def test_without_a_share_of_cores_a_launch_is_the_drivers_own(driver: Driver, name: str) -> None:
    container = driver.container()
    with container.program() as program:
        program.get(name, *LAUNCHES[name])
        assert events(program) == 0
        assert [row.gpu_ns for row in container.cards[0].rows.values()] == [0]
