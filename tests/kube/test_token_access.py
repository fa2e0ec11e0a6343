"""Who may read a path: as the API server decides, asked rarely, and never guessed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

import kube.token_access
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.token_access import Denied, TokenAccess

from .reviewing_server import KNOWN, OWNER, ReviewingServer, reviewing

_BOTH = ["TokenReview", "SubjectAccessReview"]


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Iterator[ReviewingServer]:
    with reviewing() as server:
        yield server


@pytest.fixture
async def access(server: ReviewingServer, clock: Clock) -> AsyncIterator[TokenAccess]:
    calls = ApiCalls(Access("127.0.0.1", server.port))
    yield TokenAccess(calls, clock)
    calls.close()


def kinds(server: ReviewingServer) -> list[str]:
    return [kind for kind, _ in server.asked]


async def test_the_owner_of_a_token_reads_what_the_api_server_allows(
    server: ReviewingServer, access: TokenAccess
) -> None:
    assert await access.denied(KNOWN, "/usage") is None
    assert await access.denied(KNOWN, "/metrics") == Denied(403, f"{OWNER['username']} may not get /metrics")
    assert kinds(server) == _BOTH * 2


async def test_no_token_is_refused_without_a_review(server: ReviewingServer, access: TokenAccess) -> None:
    assert await access.denied("", "/usage") == Denied(401, "no token was sent")
    assert server.asked == []


@pytest.mark.parametrize("token", ["guessed", KNOWN.upper(), f"{KNOWN} ", '"}{', "ü\x00", "x" * 60_000])
async def test_an_unknown_token_is_refused(access: TokenAccess, token: str) -> None:
    assert await access.denied(token, "/usage") == Denied(401, "the API server does not know the token")


async def test_a_right_is_asked_for_once_a_minute(server: ReviewingServer, access: TokenAccess, clock: Clock) -> None:
    for _ in range(3):
        assert await access.denied(KNOWN, "/usage") is None
        clock.now += 20
    assert kinds(server) == _BOTH
    server.may_get.clear()
    denied = await access.denied(KNOWN, "/usage")
    assert denied is not None and denied.status == 403


async def test_a_right_that_was_granted_is_found_within_seconds(
    server: ReviewingServer, access: TokenAccess, clock: Clock
) -> None:
    assert await access.denied(KNOWN, "/metrics") is not None
    server.may_get.add("/metrics")
    assert await access.denied(KNOWN, "/metrics") is not None, "the refusal is kept"
    clock.now += 11
    assert await access.denied(KNOWN, "/metrics") is None


async def test_unknown_tokens_displace_no_known_one_and_are_reviewed_one_at_a_time(
    server: ReviewingServer, access: TokenAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube.token_access, "_MOST_KEPT", 8)
    assert await access.denied(KNOWN, "/usage") is None
    await asyncio.gather(*(access.denied(f"guess-{number}", "/usage") for number in range(20)))
    assert (server.together, len(server.asked)) == (1, 22)
    server.open.clear()
    flood = asyncio.create_task(access.denied("guess", "/usage"))
    assert await access.denied(KNOWN, "/usage") is None, "it waits for no review"
    server.open.set()
    assert await flood is not None


@pytest.mark.parametrize("status", [403, 500])
async def test_nobody_reads_where_the_api_server_does_not_decide(
    server: ReviewingServer, access: TokenAccess, status: int
) -> None:
    server.status = status
    denied = await access.denied(KNOWN, "/usage")
    assert denied is not None
    assert denied.status == 503 and "no such review" in denied.why
    server.status = 201
    assert await access.denied(KNOWN, "/usage") is None, "the failure is not kept"


async def test_an_api_server_that_hangs_is_no_permission(
    server: ReviewingServer, access: TokenAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube.token_access, "_PATIENCE_S", 0.2)
    server.open.clear()
    denied = await access.denied(KNOWN, "/usage")
    assert denied is not None
    assert (denied.status, "no answer within 0.2 s" in denied.why) == (503, True)
