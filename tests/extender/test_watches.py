"""What the extender has computed when it becomes ready, so that its first answer takes no longer than the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

import extender.state
from extender.watches import ClusterWatches
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from kube.api.access import Access
from kube.api.informer import follow_jobs
from serving.background_jobs import run_in_background
from serving.log import Log
from tests.builders import pod
from tests.kube.listening import JsonHandler, listening

from .populated import node

_NODES: Final = "/api/v1/nodes"
_PODS: Final = "/api/v1/pods"


@contextmanager
def cluster(last: str) -> Iterator[int]:
    """Lists two nodes and a pod with a card; the list `last` is answered after the other one."""
    other_answered, ended = threading.Event(), threading.Event()
    bound = pod("p").asks(core=30, memory=10).on("gpu1", ["gpu1-0"]).created("team", uid="u").manifest
    lists: dict[str, list[Any]] = {_NODES: [node("gpu1"), node("gpu2")], _PODS: [bound]}

    class Handler(JsonHandler):
        def do_GET(self) -> None:  # noqa: N802 - the name is http.server's
            url = urlsplit(self.path)
            if "watch" in parse_qs(url.query):
                ended.wait(20)
            elif url.path == last:
                other_answered.wait(20)
            self.answer(200, {"metadata": {"resourceVersion": "1"}, "items": lists[url.path]})
            if url.path != last:
                other_answered.set()

    with listening(Handler) as port:
        try:
            yield port
        finally:
            ended.set()


@pytest.mark.parametrize("last", [_NODES, _PODS])
async def test_what_all_nodes_have_is_computed_before_the_extender_is_ready(
    last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(last) as port:
        watches = ClusterWatches(Access("127.0.0.1", port), Dialects(), CapacityRules(), on_arrival=lambda _: None)
        async with run_in_background(follow_jobs([watches.nodes, watches.pods]), Log()):
            async with asyncio.timeout(20):
                await watches.wait_until_ready()
            monkeypatch.setattr(extender.state, "usage_of_pods", None)  # it would fail now
            assert watches.state.inconsistencies() == ()
            assert set(watches.state.node_classes()) == {"gpu1", "gpu2"}
            usage = watches.state.usage("gpu1")
    assert usage is not None and list(usage.shares) == ["u"]
