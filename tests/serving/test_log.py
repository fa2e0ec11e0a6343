from __future__ import annotations

import io
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.lifecycle import Lifecycle, run
from serving.log import Log, LogForm, take_over_library_logging
from tests.waiting import until

NOON = datetime(2025, 1, 2, 12, 0, 0, 500_000, tzinfo=UTC)


def written(form: LogForm, text: str, /, **fields: object) -> str:
    stream = io.StringIO()
    Log(form=form, stream=stream, clock=lambda: NOON).event(text, **fields)
    return stream.getvalue()


def test_json_is_one_object_with_time_level_event_and_fields() -> None:
    line = written(LogForm.JSON, "denied", pod="team-a/train-0", cores=30)
    assert json.loads(line) == {
        "time": "2025-01-02T12:00:00.500000Z",
        "level": "info",
        "event": "denied",
        "pod": "team-a/train-0",
        "cores": 30,
    }


def test_console_is_a_line_for_people() -> None:
    line = written(LogForm.CONSOLE, "pod denied", pod="team-a/train-0", why="no quota", cores=30)
    assert line == '12:00:00 info  pod denied pod=team-a/train-0 why="no quota" cores=30\n'


@pytest.mark.parametrize("level", ["warning", "error"])
def test_each_line_has_its_level(level: str) -> None:
    stream = io.StringIO()
    getattr(Log(stream=stream), level)("something")
    assert json.loads(stream.getvalue())["level"] == {"warning": "warn"}.get(level, level)


async def test_frequent_events_are_written_later_in_one_batch() -> None:
    stream = Written()
    log = Log(stream=stream)
    for number in range(3):
        log.batched("judged", number=number)
    assert stream.writes == []
    await until(lambda: stream.writes != [])
    assert len(stream.writes) == 1
    assert [json.loads(line)["number"] for line in stream.getvalue().splitlines()] == [0, 1, 2]


async def test_a_batch_is_limited_so_that_no_request_waits_for_its_formatting() -> None:
    stream = Written()
    log = Log(stream=stream)
    for number in range(120):
        log.batched("judged", number=number)
    assert [text.count("\n") for text in stream.writes] == [50, 50]


async def test_lines_keep_their_order_and_nothing_urgent_waits() -> None:
    stream = io.StringIO()
    log = Log(stream=stream)
    log.batched("judged")
    log.warning("failed")
    assert events(stream) == ["judged", "failed"]


def test_a_line_is_written_at_once_where_no_loop_runs() -> None:
    stream = io.StringIO()
    Log(stream=stream).batched("judged")
    assert events(stream) == ["judged"]


def test_all_events_are_written_before_the_process_ends() -> None:
    stream = io.StringIO()
    log = Log(stream=stream)

    async def judge_and_end(_: Lifecycle) -> None:
        log.batched("judged")

    assert run(judge_and_end, log=log) == 0
    assert events(stream) == ["judged"]


def test_threads_take_each_line_once() -> None:
    stream = io.StringIO()
    log = Log(stream=stream)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(log.event, map(str, range(500))))
    assert sorted(map(int, events(stream))) == [*range(500)]


class Written(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return super().write(text)


def events(stream: io.StringIO) -> list[str]:
    return [json.loads(line)["event"] for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("form", LogForm)
@given(text=st.text(), value=st.text())
def test_a_log_line_is_one_printable_line_for_any_input(form: LogForm, text: str, value: str) -> None:
    line = written(form, text, name=value)
    assert line.endswith("\n")
    assert line[:-1].isprintable()


@given(text=st.text(), value=st.text())
def test_escaping_loses_nothing(text: str, value: str) -> None:
    read = json.loads(written(LogForm.JSON, text, name=value))
    assert (read["event"], read["name"]) == (text, value)


@pytest.mark.parametrize("form", LogForm)
def test_a_field_of_any_type_is_written(form: LogForm) -> None:
    assert "1e" in written(form, "odd", names={"a"}, number=10**30, cause=ValueError("1e"), half="\ud800")


def test_a_log_without_a_reader_raises_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    Log(stream=stream).event("nobody listens")


@pytest.mark.usefixtures("root_handlers")
def test_reports_of_libraries_become_event_lines_with_their_trace() -> None:
    stream = io.StringIO()
    take_over_library_logging(Log(stream=stream))
    try:
        json.loads("{")
    except ValueError:
        logging.getLogger("library").exception("it broke")
    logging.getLogger("library").info("chatter")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["level"], line["event"], line["logger"]) for line in lines] == [("error", "it broke", "library")]
    assert "JSONDecodeError: " in lines[0]["trace"]
