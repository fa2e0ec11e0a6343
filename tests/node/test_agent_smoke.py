"""The agent on a real node: a container gets the card that was recorded for it, and a restart disturbs nobody."""

from __future__ import annotations

from devcluster.objects import Object
from halfcard import names
from tests.builders import pod
from tests.cluster.pods import get_pod
from tests.cluster.site import cards_of

from .gpu_churn import runs_of
from .gpu_cluster import GpuCluster
from .told import differences


def health_of(pod: Object) -> set[str]:
    """Of all device ids, as kubelet tells it."""
    statuses = [
        each for container in pod["status"]["containerStatuses"] for each in container["allocatedResourcesStatus"]
    ]
    return {device["health"] for status in statuses for device in status["resources"]}


def test_a_share_gets_the_card_that_was_recorded_for_it(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    running = gpus.run(space, pod("one").asks(core=30, memory=10))
    assert differences(gpus.cluster, running) == []
    told = gpus.ask(running)
    uuids = [card.uuid for card in gpus.agent.driver.cards]
    (card,) = told.cards
    assert told.devices >= {f"nvidia{uuids.index(card)}", "nvidiactl"}
    assert not told.devices & {f"nvidia{minor}" for minor in range(len(uuids)) if minor != uuids.index(card)}


def test_running_shares_outlive_the_agent_and_new_ones_start_after_it_is_back(gpus: GpuCluster, space: str) -> None:
    before = gpus.run(space, pod("before").asks(core=20, memory=4))
    gpus.agent.kill()
    gpus.agent.start()
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    after = gpus.run(space, pod("after").asks(core=20, memory=4))
    assert differences(gpus.cluster, after) == []
    gpus.cluster.wait_until(
        lambda: health_of(get_pod(gpus.cluster, space, "before")) == {"Healthy"},
        what="kubelet to take the share's ids for healthy",
    )
    assert runs_of(get_pod(gpus.cluster, space, "before")) == runs_of(before)
    assert len(cards_of(after)) == 1
