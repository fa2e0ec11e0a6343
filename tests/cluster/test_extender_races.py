"""Races between filter and bind: two pods for one place, deleted pods, failed binds, foreign records.

The pods name a scheduler that does not exist: the test calls the extender itself.
"""

from __future__ import annotations

import json
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from devcluster.objects import Object
from devcluster.services.extender_installation import ExtenderInstallation
from halfcard import names
from tests.builders import pod

from .site import Site, annotations_of, cards_of, node_of

FORGED = {"tencent.com/predicate-gpu-idx-1": "0"}


def share(name: str, core: int = 60) -> Any:
    return pod(name).asks(core=core, memory=10)


def bind_directly(site: Site, stored: Object, node: str, record: dict[str, str] | None = None) -> None:
    """Binds a pod without the extender, as any user with the right may."""
    name = stored["metadata"]["name"]
    metadata = {"name": name, "annotations": record or {}}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    site.cluster.request("POST", f"{site.pods}/{name}/binding", binding).must()


def test_the_last_place_goes_to_one_of_two_pods_and_later_to_the_other(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    stored = [site.create_unscheduled(share(name)) for name in ("a", "b")]
    assert [site.extender.filter(each, node)["NodeNames"] for each in stored] == [[node], [node]]
    with ThreadPoolExecutor(2) as pool:
        errors = [*pool.map(lambda each: site.extender.bind(each, node), stored)]
    assert sorted(map(bool, errors)) == [False, True]
    assert max(errors) == f"node {node}: no card has 60 per cent free; the scheduler will choose again"
    winner, loser = sorted(stored, key=lambda each: bool(errors[stored.index(each)]))
    assert site.pods_by_card(node) == [[winner["metadata"]["name"]]]
    site.delete(winner["metadata"]["name"], force=True)
    site.wait_for_pods(node, [[]])
    assert site.extender.bind(loser, node) == ""
    assert site.pods_by_card(node) == [[loser["metadata"]["name"]]]


def test_of_concurrent_binds_exactly_as_many_succeed_as_fit(site: Site) -> None:
    node = site.add_silent_node("gpu-manager", cards=3)
    stored = [site.create_unscheduled(share(f"p{number}")) for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        errors = [*pool.map(lambda each: site.extender.bind(each, node), stored)]
    assert errors.count("") == 3
    bound = [each for each in (site.pod(each["metadata"]["name"]) for each in stored) if node_of(each)]
    assert sorted(cards for each in bound for cards in cards_of(each).values()) == [["0"], ["1"], ["2"]]


def test_a_failed_bind_leaves_nothing_and_can_be_retried(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    stored = site.create_unscheduled(share("p"), schedulingGates=[{"name": "example.com/wait"}])
    error = site.extender.bind(stored, node)
    assert "schedulingGates" in error
    assert site.pods_by_card(node) == [[]]
    gone = [{"op": "remove", "path": "/spec/schedulingGates"}]
    done = site.cluster.kubectl("-n", site.namespace, "patch", "pod", "p", "--type=json", f"-p={json.dumps(gone)}")
    assert done.code == 0, done.stderr
    assert site.extender.bind(stored, node) == ""
    assert site.pods_by_card(node) == [["p"]]


def test_a_pod_deleted_between_filter_and_bind_uses_nothing(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    stored = site.create_unscheduled(share("p"))
    assert site.extender.filter(stored, node)["NodeNames"] == [node]
    site.delete("p", force=True)
    assert "is gone" in site.extender.bind(stored, node)
    assert site.pods_by_card(node) == [[]]


def test_another_pod_of_the_same_name_is_not_bound_in_its_place(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    first = site.create_unscheduled(share("p"))
    site.delete("p", force=True)
    site.create_unscheduled(share("p"))
    assert "is gone" in site.extender.bind(first, node)
    assert node_of(site.pod("p")) == ""


def test_a_terminating_pod_keeps_its_card_until_it_is_deleted(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    first, second = (site.create_unscheduled(share(name)) for name in ("a", "b"))
    assert site.extender.bind(first, node) == ""
    site.delete("a")
    assert "deletionTimestamp" in site.pod("a")["metadata"]
    assert "no card has 60 per cent free" in site.extender.bind(second, node)
    site.delete("a", force=True)
    site.wait_for_pods(node, [[]])
    assert site.extender.bind(second, node) == ""


def test_a_finished_pod_frees_its_card_before_it_is_deleted(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    first, second = (site.create_unscheduled(share(name)) for name in ("a", "b"))
    assert site.extender.bind(first, node) == ""
    path = f"{site.pods}/a/status"
    site.cluster.client.merge(site.cluster.admin, path, {"status": {"phase": "Succeeded"}})
    site.wait_for_pods(node, [[]])
    assert site.extender.bind(second, node) == ""


def test_a_second_bind_changes_no_record_and_fails_for_another_node(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    other = site.add_nodes("gpu-manager")[0]
    stored = site.create_unscheduled(share("p"))
    assert site.extender.bind(stored, node) == ""
    record = annotations_of(site.pod("p"))
    assert site.extender.bind(stored, node) == ""
    assert f"is bound to node {node} already" in site.extender.bind(stored, other)
    assert (node_of(site.pod("p")), annotations_of(site.pod("p"))) == (node, record)


def test_a_pod_bound_without_a_record_counts_by_its_requests(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    foreign, own = (site.create_unscheduled(share(name)) for name in ("foreign", "own"))
    bind_directly(site, foreign, node)
    site.wait_for_pods(node, [["foreign"]])
    (card,) = site.cards(node)
    assert (card["cores"]["used"], card["pods"][0]["recorded"]) == (60, False)
    assert "no card has 60 per cent free" in site.extender.bind(own, node)
    assert annotations_of(site.pod("foreign")) == {}


def test_a_pod_created_with_a_record_is_refused_by_filter_and_bind(site: Site) -> None:
    node = site.add_silent_node("gpu-manager")
    stored = site.create_unscheduled(share("p").annotated(FORGED))
    answer = site.extender.filter(stored, node)
    assert answer["NodeNames"] is None
    assert "HC020" in answer["Error"]
    assert "HC020" in site.extender.bind(stored, node)
    assert node_of(site.pod("p")) == ""


def test_a_forged_record_is_reported_and_affects_no_other_pod(site: Site) -> None:
    node = site.add_silent_node("gpu-manager", cards=2)
    forged, honest = (site.create_unscheduled(share(name)) for name in ("forged", "honest"))
    record = {"tencent.com/predicate-gpu-idx-0": "99", "tencent.com/predicate-node": node}
    bind_directly(site, forged, node, record)
    site.cluster.wait_until(lambda: sum(map(len, site.pods_by_card(node))) == 1, what="the forged pod to be seen")
    (doubt,) = site.extender.inspect(node)["doubts"]
    assert f"pod {site.namespace}/forged on node {node}" in doubt
    assert '"99"' in doubt
    assert site.extender.bind(honest, node) == ""
    assert sorted(site.pods_by_card(node)) == [["forged"], ["honest"]]


def test_a_new_leader_rebuilds_its_state_from_annotations(extender: ExtenderInstallation, site: Site) -> None:
    nodes = [*site.add_nodes("gpu-manager"), *site.add_nodes("tuya-half-cards"), *site.add_nodes("volcano")]
    for number, asks in enumerate(({"core": 30, "memory": 9}, {"sgpu": 3}, {"gpu_memory": 512}, {"core": 200})):
        site.place(pod(f"p{number}").asks(**asks))
    before = [extender.inspect(node) for node in nodes]
    assert extender.end(extender.leader()) == 0
    extender.add_replica()
    assert [extender.inspect(node) for node in nodes] == before


@pytest.mark.parametrize("verb", [names.BIND_PATH, names.PREEMPT_PATH])
def test_bind_and_preempt_need_a_client_certificate(extender: ExtenderInstallation, verb: str) -> None:
    untrusted = ssl.create_default_context(cafile=str(extender.cluster.authority.certificate))
    with pytest.raises((ssl.SSLError, OSError)):
        extender.leader().ask(verb, {}, tls=untrusted)
