"""Halfcard from its chart, as pods of its own image on a real node: installed, upgraded under load, removed.

The extender is asked by the stock scheduler over mutual TLS, with the certificate that the chart's keeper made for it.
"""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Final

import pytest

from cli.__main__ import main as halfcard
from deploy.image.build import NAME, default_cache, image
from devcluster.cluster import Cluster
from devcluster.nodes.node import RealNode
from devcluster.objects import Object
from devcluster.services.quota_installation import path_of, quota
from halfcard import __version__, names
from halfcard.inventory import read_inventory
from tests.builders import pod
from tests.cluster.dump import Dump, changes, dump
from tests.cluster.hammer import Hammer
from tests.cluster.helm import Helm, images
from tests.cluster.load import NO_RATE_LIMITS
from tests.cluster.manifests import bad
from tests.cluster.pods import busybox_pod, create_pod, get_pod, wait_for_phase
from tests.cluster.site import cards_of

from . import leftovers
from .evening import type_the_readme
from .gpu_churn import runs_of
from .own_pods import ask_the_extender, certificate, image_names, own_pods, replicas, served_certificate, touch
from .tenants import Tenants, failures
from .told import telling

_VALUES: Final = {"agent": {"arguments": ["--fake-gpus=4xT4"]}}
_OTHER_SETTINGS: Final = {
    **_VALUES,
    "settings": {"packing": "spread", "exempt_namespaces": ["elsewhere"]},  # registers the webhooks otherwise, too
    "webhooks": {"guard": True},
    "image": {"repository": "registry.example/halfcard", "pullPolicy": "Never"},  # no registry: it stands on the node
}
_ELSEWHERE: Final = f"registry.example/halfcard:{__version__}"
_LARGEST_IMAGE: Final = 45_000_000
_FIRST_EVENING_S: Final = 300.0
_BROUGHT_S: Final = 120.0
_FEWEST_CREATES: Final = 100
_TENANTS: Final = "team-a"
_THEIR_GATE: Final = "example.com/other"


@pytest.fixture(scope="module")
def before() -> dict[str, Object]:
    """What was there before Halfcard; filled in by `evening`."""
    return {}


@dataclass(frozen=True)
class Evening:
    """Halfcard, installed in the words of the README: from no cluster to the first share, which names its card."""

    helm: Helm
    node: RealNode
    card: str
    seconds: float


@pytest.fixture(scope="module")
def evening(before: dict[str, Object]) -> Iterator[Evening]:
    began = time.monotonic()
    with Cluster(flags=NO_RATE_LIMITS) as cluster, RealNode(cluster, "gpu-a") as node:
        cluster.create_namespace(_TENANTS)
        create_pod(cluster, _TENANTS, gated("waits"))
        before |= dump(cluster)
        card = type_the_readme(cluster, node)
        yield Evening(Helm(cluster), node, card, time.monotonic() - began)


@pytest.fixture
def helm(evening: Evening) -> Helm:
    return evening.helm


def gated(name: str) -> Object:
    """Behind the gate of a quota, and behind somebody else's."""
    item = busybox_pod(name, "exec sleep infinity")
    item["spec"]["schedulingGates"] = [{"name": names.QUOTA_GATE}, {"name": _THEIR_GATE}]
    return item


def creating(cluster: Cluster) -> Hammer:
    """One after the other: more would keep two cores from whatever is being replaced."""
    return Hammer(Tenants(cluster, _TENANTS, real_every=2).create, threads=1)


def run_share(cluster: Cluster, name: str) -> Any:
    created = create_pod(cluster, _TENANTS, telling(pod(name).asks(core=30, memory=10)).manifest)
    return wait_for_phase(cluster, _TENANTS, created, "Running")


def test_the_image_is_the_same_when_it_is_built_again() -> None:
    built = image(default_cache())
    assert built == image(default_cache())
    assert len(built) < _LARGEST_IMAGE


def test_from_nothing_to_the_first_share_takes_less_than_five_minutes(evening: Evening) -> None:
    sys.stderr.write(f"from no cluster to the first share: {evening.seconds:.0f} s\n")
    assert evening.seconds < _FIRST_EVENING_S
    recorded = cards_of(get_pod(evening.helm.cluster, "default", "first-share"))
    uuids = uuids_by_name(evening.helm.cluster, evening.node.name)
    assert [uuids[name] for name in recorded["main"]] == [evening.card]


def uuids_by_name(cluster: Cluster, node: str) -> dict[str, str]:
    """A record names cards by their index where it was made before the agent had told of them."""
    told = cluster.request("GET", f"/api/v1/nodes/{node}").must()["metadata"]["annotations"][names.INVENTORY]
    cards = read_inventory(told).cards
    return {str(card.index): card.uuid for card in cards} | {card.uuid: card.uuid for card in cards}


def test_the_doctor_finds_nothing(helm: Helm) -> None:
    said = io.StringIO()
    with redirect_stdout(said):
        code = halfcard(
            ["doctor", "--strict", "--namespace", _TENANTS, f"--kubeconfig={helm.cluster.admin.kubeconfig}"]
        )
    assert code == 0, said.getvalue()


def test_what_cannot_be_is_refused_with_the_rule_and_the_fix(helm: Helm) -> None:
    done = helm.cluster.kubectl("create", "-f-", f"--namespace={_TENANTS}", stdin=json.dumps(bad("much")))
    assert done.code == 1
    assert 'got "150"; cores must be 1-99 for a share of one card, or a multiple of 100' in done.stderr
    assert "use 100 or 200 [HC002]" in done.stderr


def test_only_the_agent_needs_more_than_the_restricted_standard_gives(helm: Helm) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    done = helm.cluster.kubectl("label", "--dry-run=server", "namespace", names.NAMESPACE, label)
    assert set(re.findall(r"halfcard-([a-z]+)[-a-z0-9]*:", done.stderr)) == {"agent"}, done.stderr


def test_a_new_certificate_reaches_the_webhooks_pods_and_fails_no_call(evening: Evening) -> None:
    """In the keeper's own time; kubelet, which looks after a minute or so, is made to look."""
    cluster, admission = evening.helm.cluster, own_pods(evening.helm.cluster, names.ADMISSION_SERVICE)

    def shown() -> set[str]:
        return {served_certificate(evening.node, each["status"]["podIP"]) for each in admission}

    before, kept = shown(), certificate(cluster, names.ADMISSION_TLS)
    with creating(cluster) as hammer:
        assert halfcard(["certs", "rotate", f"--kubeconfig={cluster.admin.kubeconfig}"]) == 0
        cluster.wait_until(lambda: certificate(cluster, names.ADMISSION_TLS) != kept, what="the keeper", seconds=60)
        touch(cluster, admission)
        cluster.wait_until(lambda: not shown() & before, what="all pods to show the new one", seconds=_BROUGHT_S)
        hammer.wait_for(30)
    assert failures(hammer.answers) == {}
    assert len(hammer.answers) >= _FEWEST_CREATES
    assert len(shown()) == len(before) == 1


def test_an_upgrade_fails_no_call_and_neither_it_nor_the_way_back_touches_a_running_pod(evening: Evening) -> None:
    helm, cluster = evening.helm, evening.helm.cluster
    images(evening.node, "tag", NAME, _ELSEWHERE)
    running = run_share(cluster, "two")
    first, trusted = replicas(cluster), certificate(cluster)
    with creating(cluster) as hammer:
        hammer.wait_for(30)
        began = len(hammer.answers)
        helm.upgrade(_OTHER_SETTINGS)
        meanwhile = len(hammer.answers) - began
        hammer.wait_for(30)
    assert meanwhile >= _FEWEST_CREATES
    assert failures(hammer.answers) == {}
    second = replicas(cluster)
    assert image_names(cluster) == {_ELSEWHERE}
    helm.rollback()
    third = replicas(cluster)
    assert not first & second and not second & third
    assert certificate(cluster) == trusted
    assert runs_of(get_pod(cluster, _TENANTS, "two")) == runs_of(running)
    ask_the_extender(cluster)
    run_share(cluster, "three")


def test_removed_it_leaves_what_the_page_says_and_nothing_else(evening: Evening, before: Dump) -> None:
    """The last one: Halfcard is gone afterwards."""
    cluster = evening.helm.cluster
    allow_some(cluster)
    cluster.request("POST", f"/api/v1/namespaces/{_TENANTS}/resourcequotas", leftovers.WRITTEN).must()
    run_share(cluster, "kept")
    beside = leftovers.of_tenants(dump(cluster), _TENANTS, "default")
    evening.helm.uninstall()

    def left() -> list[str]:
        return sorted(dump(cluster).keys() - before.keys() - beside.keys())

    stays = leftovers.objects(_TENANTS)
    cluster.wait_until(lambda: left() == stays, what="only that to stay", seconds=60, details=lambda: "\n".join(left()))
    after = dump(cluster)
    assert leftovers.offered(after, evening.node.name) == {"0"}
    assert leftovers.folders(evening.node) == {"/var/lib/halfcard", "/run/cdi"}
    assert leftovers.unsaid() == []
    opened = {f"Pod {_TENANTS} waits": ["spec schedulingGates"]}
    assert changes(before, after) == {**opened, f"Node {evening.node.name}": leftovers.NODE_FIELDS}
    assert changes(beside, after) == opened
    assert get_pod(cluster, _TENANTS, "waits")["spec"]["schedulingGates"] == [{"name": _THEIR_GATE}]


def test_what_it_added_to_a_quota_stays_until_it_is_reverted(helm: Helm) -> None:
    cluster = helm.cluster
    assert leftovers.native(cluster, _TENANTS).keys() == {*leftovers.WRITTEN["spec"]["hard"], leftovers.TWIN}
    code, said = leftovers.reverted(cluster, "--dry-run")
    assert (code, leftovers.TWIN in said) == (1, True), said
    assert leftovers.reverted(cluster)[0] == 0
    assert leftovers.native(cluster, _TENANTS) == leftovers.WRITTEN["spec"]["hard"]


def allow_some(cluster: Cluster) -> None:
    """Returns once the quota is counted: before that, nobody is let in."""
    item = quota("gpu", {"hard": {"cards": 4, "cores": 400}}, _TENANTS)
    done = cluster.kubectl("create", "-f-", stdin=json.dumps(item))
    assert done.code == 0, done.stderr

    def conditions() -> dict[str, str]:
        status = cluster.request("GET", path_of(item)).must().get("status", {})
        return {each["type"]: each["status"] for each in status.get("conditions", [])}

    cluster.wait_until(lambda: conditions().get("Ready") == "True", what="the quota to be counted")
