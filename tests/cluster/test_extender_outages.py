"""A network with delays: the extender's state is stale, or its requests arrive late."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import pytest

from devcluster.services.extender_installation import ExtenderInstallation, ExtenderReplica
from devcluster.services.relay import Relay
from halfcard import names
from tests.builders import pod

from .site import Site, node_of

_LOCAL: Final = "127.0.0.1"
_QUIET_S: Final = 2.0


@pytest.fixture
def relay() -> Iterator[Relay]:
    """A relay between a replica and the API server."""
    made = Relay(_LOCAL)
    yield made
    made.close()


@contextmanager
def leading(extender: ExtenderInstallation, relay: Relay) -> Iterator[ExtenderReplica]:
    """Makes one replica behind the relay the leader; afterwards a replica without relay leads."""
    for replica in [*extender.replicas]:
        extender.end(replica)
    behind = extender.add_replica(access=extender.behind(relay))
    assert extender.leader() is behind
    try:
        yield behind
    finally:
        relay.release()
        extender.kill(behind)
        if not extender.replicas:
            extender.add_replica()


def unchanged(count: Callable[[], int]) -> Callable[[], bool]:
    """Returns a condition that is true once the count has not changed for two seconds."""
    last, since = count(), time.monotonic()

    def is_unchanged() -> bool:
        nonlocal last, since
        if (now := count()) != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > _QUIET_S

    return is_unchanged


def test_a_pod_refused_on_stale_state_is_placed_once_the_watch_catches_up(
    extender: ExtenderInstallation, site: Site, relay: Relay
) -> None:
    """The scheduler sees the free card and calls at once, is refused, and would try again only after five minutes."""
    with leading(extender, relay):
        node = site.add_silent_node("gpu-manager")
        site.place(pod("first").asks(core=60, memory=10))
        site.create(pod("second").asks(core=50, memory=10))
        site.wait_for_refusal("second")
        relay.hold()
        asked = extender.filtered()
        site.delete("first", force=True)
        site.cluster.wait_until(lambda: extender.filtered() > asked, what="the scheduler to ask again")
        site.cluster.wait_until(unchanged(extender.filtered), what="the scheduler to stop asking")
        relay.release()
        site.wait_until_bound("second")
        assert site.pods_by_card(node) == [["second"]]


def test_a_bind_that_arrives_after_the_takeover_is_rejected(
    extender: ExtenderInstallation, site: Site, relay: Relay
) -> None:
    node = site.add_silent_node("gpu-manager")
    late, prompt = (site.create_unscheduled(pod(name).asks(core=60, memory=10)) for name in ("late", "prompt"))
    with leading(extender, relay) as old, ThreadPoolExecutor(1) as pool:
        refused = refused_binds(site)
        relay.hold()
        sent = pool.submit(extender.bind, late, node, by=old)
        new = extender.add_replica()
        site.cluster.wait_until(new.leads, what="the other replica to take over", seconds=40)
        assert not old.leads()
        assert extender.bind(prompt, node, by=new) == ""
        relay.release()
        assert "is the leader" in sent.result()
        site.cluster.wait_until(lambda: refused_binds(site) > refused, what="the late bind to be refused")
        assert node_of(site.pod("late")) == ""
        assert site.pods_by_card(node) == [["prompt"]]


def refused_binds(site: Site) -> int:
    """Returns how many Bindings the API server has answered with 409."""
    text: str = site.cluster.request("GET", "/metrics").must()
    counted = [line for line in text.splitlines() if line.startswith("apiserver_request_total")]
    binds = [line for line in counted if 'subresource="binding"' in line and 'code="409"' in line]
    return int(sum(float(line.split()[-1]) for line in binds))


def test_a_late_fence_of_an_earlier_leader_does_not_block_a_bind(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    stored = site.create_unscheduled(pod("p").asks(core=60, memory=10))
    fence = {"metadata": {"annotations": {names.FENCE: "an-earlier-term-7"}}}
    site.cluster.client.merge(site.cluster.admin, f"{site.pods}/p", fence)
    assert site.extender.bind(stored, node) == ""
    assert site.pods_by_card(node) == [["p"]]
