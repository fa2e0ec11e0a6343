"""If only cards are short the stock scheduler preempts nothing: an event names the pods, and none is evicted."""

from __future__ import annotations

from devcluster.services.extender_installation import ExtenderInstallation
from tests.builders import pod

from .site import Site
from .test_extender_preemption import priority


def test_an_event_names_the_pod_that_blocks_a_pod_of_higher_priority(
    extender: ExtenderInstallation, site: Site
) -> None:
    low, high = priority(extender, "low", 1), priority(extender, "high", 9)
    (node,) = site.add_nodes("gpu-manager", cards=2)
    for name, core in (("a", 70), ("b", 60)):
        site.place(pod(name).asks(core=core, memory=20), priorityClassName=low)
    assert site.pods_by_card(node) == [["a"], ["b"]]
    site.create(pod("urgent").asks(core=50, memory=20), priorityClassName=high)

    def messages() -> list[str]:
        events = extender.cluster.request("GET", f"/api/v1/namespaces/{site.namespace}/events").must()["items"]
        about = [each for each in events if each["involvedObject"]["name"] == "urgent"]
        return [each["message"] for each in about if each["reason"] == "CardsHeldByLowerPriority"]

    extender.cluster.wait_until(lambda: bool(messages()), what="the event")
    (message,) = messages()
    assert f"would fit on node {node} without {site.namespace}/" in message
    assert "kube-scheduler does not preempt for cards" in message
    assert site.pods_by_card(node) == [["a"], ["b"]]
