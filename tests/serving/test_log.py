from __future__ import annotations

import io
import json
import logging
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.log import Log, LogForm, take_over_library_logging

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
def test_levels_are_told(level: str) -> None:
    stream = io.StringIO()
    getattr(Log(stream=stream), level)("something")
    assert json.loads(stream.getvalue())["level"] == {"warning": "warn"}.get(level, level)


@pytest.mark.parametrize("form", LogForm)
@given(text=st.text(), value=st.text())
def test_whatever_it_is_given_a_log_line_is_one_printable_line(form: LogForm, text: str, value: str) -> None:
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


def test_a_log_without_a_reader_disturbs_nobody() -> None:
    stream = io.StringIO()
    stream.close()
    Log(stream=stream).event("nobody listens")


@pytest.mark.usefixtures("root_handlers")
def test_what_libraries_report_becomes_an_event_line_with_its_trace() -> None:
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
