"""Event lines: one JSON object, or one line of text for a terminal.

Invariant: a line never contains a raw control character, and writing a line never raises: no request may fail because
of its log line. Fields contain names, counts and codes, never object bodies. Lines appear in the order of the calls.
"""

from __future__ import annotations

import asyncio
import enum
import json
import logging
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import msgspec

_encoder = msgspec.json.Encoder(enc_hook=str)
_BATCH_DELAY_S: Final = 0.05
_BATCH_SIZE: Final = 50
"""The most events of a batch, since requests wait while it is formatted."""

_BARE = re.compile(r"[\w./:@+-]+")

_Entry = tuple[datetime, str, str, dict[str, object]]
"""The time, level, event and fields of a line."""


class LogForm(enum.StrEnum):
    JSON = "json"
    CONSOLE = "console"


def utc_now() -> datetime:
    return datetime.now(UTC)


class Log:
    def __init__(
        self,
        *,
        form: LogForm = LogForm.JSON,
        stream: TextIO | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._render = _json_line if form is LogForm.JSON else _console_line
        self._clock = clock
        self._pending: deque[_Entry] = deque()

    def batched(self, text: str, /, **fields: object) -> None:
        """Logs an event that occurs hundreds of times a second: such events are formatted and written in batches.

        One by one they cost a tenth of the webhook's CPU, and wake the program that reads the log.
        """
        self._pending.append((self._clock(), "info", text, fields))
        if len(self._pending) >= _BATCH_SIZE:
            self.flush()
        elif len(self._pending) == 1:
            self._flush_soon()

    def event(self, text: str, /, **fields: object) -> None:
        self._write("info", text, fields)

    def warning(self, text: str, /, **fields: object) -> None:
        self._write("warn", text, fields)

    def error(self, text: str, /, **fields: object) -> None:
        self._write("error", text, fields)

    def _write(self, level: str, text: str, fields: dict[str, object]) -> None:
        self._pending.append((self._clock(), level, text, fields))
        self.flush()

    def _flush_soon(self) -> None:
        try:
            asyncio.get_running_loop().call_later(_BATCH_DELAY_S, self.flush)
        except RuntimeError:  # no event loop runs
            self.flush()

    def flush(self) -> None:
        try:
            self._stream.write("".join(self._drain()))
            self._stream.flush()
        except (OSError, ValueError):
            pass  # The reader of the log is gone, so there is no place to report it.

    def _drain(self) -> Iterator[str]:
        """Yields the pending lines; several threads may call it, and each line is yielded once."""
        with suppress(IndexError):
            while True:
                yield f"{self._render(*self._pending.popleft())}\n"


def _json_line(at: datetime, level: str, text: str, fields: dict[str, object]) -> str:
    return _without_controls(_encode({"time": at, "level": level, "event": text, **fields}))


def _console_line(at: datetime, level: str, text: str, fields: dict[str, object]) -> str:
    details = "".join(f" {name}={_console_value(value)}" for name, value in fields.items())
    return _without_controls(f"{at:%H:%M:%S} {level:5} {text}{details}")


def _console_value(value: object) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value):
        return value
    return _encode(value)


def _encode(value: object) -> str:
    try:
        return _encoder.encode(value).decode()
    except Exception:  # noqa: BLE001 - for example a lone surrogate in a name, which json encodes
        return json.dumps(value, default=str, skipkeys=True)


def _without_controls(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


class _ToLog(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name}
        if record.exc_info:
            fields["trace"] = logging.Formatter().formatException(record.exc_info)
        write = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        write(record.getMessage(), **fields)


def take_over_library_logging(log: Log) -> None:
    """Turns warnings and errors that libraries report through `logging` into event lines."""
    logging.getLogger().handlers[:] = [_ToLog(log)]
