"""How tries on a card are judged, and what is said where there is no card."""

from __future__ import annotations

import pytest

from halfcard.isolation.shared_files import NO_LIMIT

from . import verdicts
from .__main__ import judged, lines, not_tried
from .facts import control_of, last_answer, library_path
from .node import CardNode, RealCard
from .tries import TRIES
from .verdicts import Filled, Verdict

LDCONFIG = """\
2 libs found in cache `/etc/ld.so.cache'
\tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1
\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1
\tlibnvidia-ml.so.1 (libc6,x86-64, OS ABI: Linux 2.3.99) => /usr/lib/libnvidia-ml.so.1
"""
CARD = RealCard("GPU-41414141-4141-4141-4141-414141414141", "H100", "575.1", 80000)


@pytest.mark.parametrize(
    ("filled", "passed"),
    [
        pytest.param(Filled(900, 1000, 1200), True, id="all but the context, which is on the card"),
        pytest.param(Filled(1000, 1000, 1256), True, id="all"),
        pytest.param(Filled(1001, 1000, 1256), False, id="more than the share"),
        pytest.param(Filled(799, 1000, 1000), False, id="refused too early"),
        pytest.param(Filled(900, 80000, 1000), False, id="sees the card"),
        pytest.param(Filled(900, 1000, 1257), False, id="more on the card than in the account"),
    ],
)
def test_a_share_of_memory_is_neither_exceeded_nor_kept_back(filled: Filled, *, passed: bool) -> None:
    assert verdicts.of_memory(1000, filled).passed is passed


@pytest.mark.parametrize(
    ("rates", "passed"),
    [((30, 70), True), ((33, 67), True), ((33.1, 67), False), ((26, 70), False), ((0, 70), False)],
)
def test_neighbours_get_their_share_of_what_one_gets_alone(rates: tuple[float, float], *, passed: bool) -> None:
    found = verdicts.of_cores({"a": 30, "b": 70}, dict(zip("ab", rates, strict=True)), 100)
    assert found.passed is passed


def test_overhead_is_the_ratio_of_the_medians() -> None:
    assert verdicts.of_overhead([1.0, 1.0, 9.0], [1.005, 1.005, 1.0]) == Verdict(
        passed=True, figures="+0.50 % (1.000 s without)"
    )
    assert not verdicts.of_overhead([1.0], [1.006]).passed


def test_utilisation_needs_two_processes_that_add_up() -> None:
    assert verdicts.of_utilisation([{1: 50, 2: 48}, {1: 100}]).figures == "in the mean 98 %, 98 to 98"
    assert not verdicts.of_utilisation([{1: 99, 2: 99}]).passed
    assert verdicts.of_utilisation([{1: 100}, {}]) == Verdict(
        passed=False, figures="NVML showed no two processes at once"
    )


@pytest.mark.parametrize("answer", [{}, {"right": False}, {"right": 1}])
def test_a_program_must_say_that_its_result_is_right(answer: dict[str, object]) -> None:
    assert verdicts.of_answer({"right": True}).passed and not verdicts.of_answer(answer).passed


def test_the_driver_is_found_in_the_list_of_libraries() -> None:
    assert library_path(LDCONFIG, "libcuda.so.1") == "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    assert library_path(LDCONFIG, "libnvidia-ml.so.1") == "/usr/lib/libnvidia-ml.so.1"
    assert library_path(LDCONFIG, "libnvidia-m") == ""


def test_the_answer_is_the_last_line_after_what_a_program_logs() -> None:
    assert last_answer('INFO loading\n{"taken": 3}\n') == {"taken": 3}


@pytest.mark.parametrize(("output", "error"), [("", ValueError), ("INFO\n", ValueError), ("3", TypeError)])
def test_another_last_line_is_an_error(output: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"Expecting|a program ends"):
        last_answer(output)


def test_a_container_has_the_limits_of_its_share_on_this_card() -> None:
    control = control_of(CARD.uuid, 10, 30, 2)
    assert control[:-1] == (b"A" * 16, 10 << 20, 300, NO_LIMIT, 0, 1000, 2 << 20)
    assert control_of(CARD.uuid, None, None, 0)[1:3] == (NO_LIMIT, NO_LIMIT)


def test_without_a_card_it_says_in_one_sentence_what_was_not_tried() -> None:
    said = not_tried("NVML Shared Library Not Found")
    assert said.startswith("test-card: no NVIDIA card can be used here (NVML Shared Library Not Found), so")
    assert all(name in said for name in TRIES) and said.count(".") == 1


def test_a_try_that_ends_by_an_error_has_failed_and_the_table_says_so() -> None:
    def ends(_node: CardNode) -> Verdict:
        raise KeyError("taken")

    found = {"vLLM": judged(ends, CardNode.__new__(CardNode)), "graphs": Verdict(passed=True, figures="fine")}
    assert lines(CARD, found) == [
        "H100, driver 575.1, 80000 MiB",
        f"FAILED  {'vLLM':40}KeyError: 'taken'",
        f"ok      {'graphs':40}fine",
    ]
