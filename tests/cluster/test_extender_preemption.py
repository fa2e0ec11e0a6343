"""If amounts are short the stock scheduler chooses victims; the extender adds as few as free a whole card."""

from __future__ import annotations

from devcluster.services.extender_installation import ExtenderInstallation
from tests.builders import pod

from .site import Site, cards_of


def priority(extender: ExtenderInstallation, name: str, value: int) -> str:
    item = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    extender.cluster.client.apply(extender.cluster.admin, "/apis/scheduling.k8s.io/v1/priorityclasses", item)
    return name


def test_only_as_many_pods_are_evicted_as_free_a_card(extender: ExtenderInstallation, site: Site) -> None:
    """The scheduler alone would evict two pods of low priority on two cards, and neither card would be free."""
    low, middle, high = (priority(extender, name, value) for name, value in (("low", 1), ("middle", 2), ("high", 9)))
    (node,) = site.add_nodes("gpu-manager", cards=2)
    half = {"core": 50, "memory": 30}
    for name, importance in (("a", low), ("b", middle), ("c", low), ("d", middle)):
        site.place(pod(name).asks(**half), priorityClassName=importance)
    assert site.pods_by_card(node) == [["a", "b"], ["c", "d"]]
    site.place(pod("urgent").asks(core=100), priorityClassName=high)
    (card,) = cards_of(site.pod("urgent")).values()
    left = [name for name in "abcd" if not site.is_gone(name)]
    assert left in (["b"], ["d"])
    other = {"0": 1, "1": 0}[card[0]]
    assert site.pods_by_card(node)[other] == left


def test_no_pod_is_evicted_for_a_pod_of_equal_priority(extender: ExtenderInstallation, site: Site) -> None:
    low = priority(extender, "low", 1)
    (node,) = site.add_nodes("gpu-manager", cards=1)
    site.place(pod("first").asks(core=60, memory=30), priorityClassName=low)
    site.create(pod("second").asks(core=100), priorityClassName=low)
    assert "Insufficient tencent.com/vcuda-core" in site.wait_for_refusal("second")
    assert site.pods_by_card(node) == [["first"]]
