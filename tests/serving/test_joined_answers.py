from __future__ import annotations

import asyncio

import pytest

from serving.connection import JoinedAnswer

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Recorder(asyncio.Transport):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def transport() -> Recorder:
    return Recorder()


def test_the_head_is_written_with_the_first_part_of_the_body(transport: Recorder) -> None:
    answer = JoinedAnswer(transport)
    answer.write(HEAD)
    assert transport.written == []
    answer.write(b"o")
    answer.write(b"k")
    assert transport.written == [HEAD + b"o", b"k"]


def test_a_large_body_is_not_copied_behind_its_head(transport: Recorder) -> None:
    answer = JoinedAnswer(transport)
    answer.write(HEAD)
    answer.write(b"x" * 20_000)
    assert transport.written == [HEAD, b"x" * 20_000]


def test_what_the_client_waits_for_before_it_sends_its_body_is_written_at_once(transport: Recorder) -> None:
    answer = JoinedAnswer(transport)
    answer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert len(transport.written) == 1
    answer.write(HEAD)
    answer.write(b"ok")
    assert transport.written[1:] == [HEAD + b"ok"]


def test_a_head_without_a_body_is_written_when_the_answer_ends(transport: Recorder) -> None:
    answer = JoinedAnswer(transport)
    answer.write(HEAD)
    answer.flush()
    answer.flush()
    assert transport.written == [HEAD]


def test_a_head_is_written_before_its_connection_is_closed(transport: Recorder) -> None:
    answer = JoinedAnswer(transport)
    answer.write(HEAD)
    answer.close()
    assert (transport.written, transport.is_closed, answer.is_closing()) == ([HEAD], True, True)
