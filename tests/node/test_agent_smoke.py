"""The agent on a real node: a container gets its recorded card, and running pods survive a restart of the agent."""

from __future__ import annotations

from devcluster.objects import Object
from halfcard import names
from tests.builders import pod
from tests.cluster.pods import get_pod
from tests.cluster.site import cards_of

from .container_report import wrong_cards
from .gpu_churn import container_ids
from .gpu_cluster import GpuCluster


def health_of(pod: Object) -> set[str]:
    """The health of all device ids in a pod's status, as kubelet reports it."""
    statuses = [
        each for container in pod["status"]["containerStatuses"] for each in container["allocatedResourcesStatus"]
    ]
    return {device["health"] for status in statuses for device in status["resources"]}


def test_a_share_gets_its_recorded_card(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    running = gpus.run(space, pod("one").asks(core=30, memory=10))
    assert wrong_cards(gpus.cluster, running) == []
    report = gpus.report(running)
    uuids = [card.uuid for card in gpus.agent.driver.cards]
    (card,) = report.cards
    assert report.devices >= {f"nvidia{uuids.index(card)}", "nvidiactl"}
    assert not report.devices & {f"nvidia{minor}" for minor in range(len(uuids)) if minor != uuids.index(card)}


def test_running_shares_survive_an_agent_restart_and_new_ones_start_after_it(gpus: GpuCluster, space: str) -> None:
    before = gpus.run(space, pod("before").asks(core=20, memory=4))
    gpus.agent.kill()
    gpus.agent.start()
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    after = gpus.run(space, pod("after").asks(core=20, memory=4))
    assert wrong_cards(gpus.cluster, after) == []
    gpus.cluster.wait_until(
        lambda: health_of(get_pod(gpus.cluster, space, "before")) == {"Healthy"},
        what="kubelet to report the share's device ids as healthy",
    )
    assert container_ids(get_pod(gpus.cluster, space, "before")) == container_ids(before)
    assert len(cards_of(after)) == 1
