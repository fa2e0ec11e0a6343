"""The part of an API server's wire that reviews tokens: who owns them, and who may get which path."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from .listening import JsonHandler, listening

KNOWN: Final = "known"
OWNER: Final[Mapping[str, Any]] = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "u-1",
    "groups": ["system:serviceaccounts"],
    "extra": {"authentication.kubernetes.io/node-name": ["n1"]},
}


@dataclass
class ReviewingServer:
    """Knows one token, whose owner may get some paths.

    Attributes:
        asked: the reviews so far, as kind and spec.
        together: the most reviews that were under way at the same time.
        open: answers wait until it is set.
    """

    port: int = 0
    may_get: set[str] = field(default_factory=lambda: {"/usage"})
    status: int = 201
    asked: list[tuple[str, Any]] = field(default_factory=list)
    together: int = 0
    now: int = 0
    open: threading.Event = field(default_factory=threading.Event)

    def review(self, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((kind, spec))
        if kind == "TokenReview":
            is_known = spec["token"] == KNOWN
            return {"authenticated": is_known, **({"user": OWNER} if is_known else {"error": "unknown"})}
        path, who = spec["nonResourceAttributes"], {name: spec[name] for name in ("uid", "groups", "extra")}
        is_owner = {"username": spec["user"], **who} == OWNER
        return {"allowed": is_owner and path["verb"] == "get" and path["path"] in self.may_get}


@contextmanager
def reviewing() -> Iterator[ReviewingServer]:
    server = ReviewingServer()
    server.open.set()
    turn = threading.Lock()

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name is http.server's
            review = self.asked()
            plural = f"/apis/{review['apiVersion']}/{review['kind'].lower()}s"
            assert self.path == plural, f"{self.path} is not {plural}"
            with turn:
                server.now += 1
                server.together = max(server.together, server.now)
            server.open.wait(10)
            with turn:
                server.now -= 1
                status = server.review(review["kind"], review["spec"])
            self.answer(server.status, {"status": status} if server.status == 201 else {"message": "no such review"})

    with listening(Handler) as server.port:
        try:
            yield server
        finally:
            server.open.set()
