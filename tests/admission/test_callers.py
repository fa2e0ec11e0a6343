from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from admission.entry.callers import ProvenCallers, TokenFile
from admission.metrics import WebhookMetrics
from halfcard import names
from halfcard.caller_tokens import WITHOUT, path_with, written_tokens
from serving.errors import CannotServeError
from serving.log import Log
from serving.request_body import respond

from .asgi import Answer, ask

OLD, NEW, FORGED = "a" * 64, "b" * 64, "c" * 64
PODS = names.VALIDATE_PODS_PATH


@dataclass
class Door:
    """What stands before a webhook, which answers with the path that it was asked for."""

    file: Path
    said: io.StringIO = field(default_factory=io.StringIO)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.log = Log(stream=self.said)
        self.accept(OLD)
        self.tokens = TokenFile(self.file)
        self.app = ProvenCallers(self._behind, self.tokens, WebhookMetrics(self.registry), self.log)

    @staticmethod
    async def _behind(scope: Scope, _receive: Receive, send: Send) -> None:
        await respond(send, 200, b"text/plain", scope["path"].encode())

    def accept(self, *tokens: str) -> None:
        self.file.write_bytes(written_tokens(tokens))

    def call(self, token: str) -> Answer:
        return ask(self.app, path_with(token, PODS), [None])


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path / "tokens")


def test_a_call_with_the_token_reaches_the_webhook_by_its_own_path(door: Door) -> None:
    assert door.call(OLD).body == PODS.encode()


@pytest.mark.parametrize("token", [FORGED, WITHOUT, OLD[:-1], f"{OLD}0", f"{OLD}/{OLD}", OLD.upper()])
def test_any_other_call_is_refused_before_its_body_is_read_and_counted(door: Door, token: str) -> None:
    """The body never arrives; what would be read would hang."""
    answer = door.call(token)
    assert (answer.status == 403) is (token != f"{OLD}/{OLD}")
    if answer.status == 403:
        assert answer.headers["connection"] == "close"
        assert door.registry.get_sample_value("halfcard_admission_http_errors_total", {"status": "403"}) == 1


def test_neither_the_log_nor_the_answer_nor_a_metric_contains_a_token(door: Door) -> None:
    refused = door.call(FORGED).body.decode()
    door.accept(NEW, OLD)
    door.tokens.reload(door.log)
    door.log.flush()
    metrics = str([each.samples for each in door.registry.collect()])
    for text in (refused, door.said.getvalue(), metrics):
        assert not any(token in text for token in (OLD, NEW, FORGED))
    assert "calls refused" in door.said.getvalue() and "127.0.0.1" in door.said.getvalue()


def test_many_refusals_are_one_log_line(door: Door) -> None:
    for _ in range(20):
        door.call(FORGED)
    assert door.said.getvalue().count("calls refused") == 1


def test_a_new_token_is_accepted_beside_the_old_one_and_a_retired_one_no_longer(door: Door) -> None:
    door.accept(NEW, OLD)
    door.tokens.reload(door.log)
    assert [door.call(token).status for token in (NEW, OLD, WITHOUT)] == [200, 200, 403]
    door.accept(NEW)
    door.tokens.reload(door.log)
    assert [door.call(token).status for token in (NEW, OLD)] == [200, 403]


def test_calls_without_a_token_are_accepted_while_the_file_says_so(door: Door) -> None:
    door.accept(NEW, WITHOUT)
    door.tokens.reload(door.log)
    assert [door.call(token).status for token in (NEW, WITHOUT, FORGED)] == [200, 200, 403]


@pytest.mark.parametrize("contents", [b"", b"garbage", None])
def test_an_unusable_file_changes_nothing_and_is_logged_once(door: Door, contents: bytes | None) -> None:
    door.file.unlink() if contents is None else door.file.write_bytes(contents)
    logged = door.tokens.reload(door.log)
    door.tokens.reload(door.log, logged)
    assert door.said.getvalue().count("caller tokens not read") == 1
    assert door.call(OLD).status == 200


def test_a_webhook_without_a_token_does_not_start(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    with pytest.raises(CannotServeError):
        TokenFile(file)
    file.write_bytes(b"none-of-these\n")
    with pytest.raises(CannotServeError) as why:
        TokenFile(file)
    assert "none-of-these" not in str(why.value)
