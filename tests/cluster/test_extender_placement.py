"""The stock scheduler calls Halfcard: pods of each system get cards, and the record that their node agent reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from halfcard import names
from tests.builders import pod

from .site import Site, annotations_of, cards_of, node_of

_OWN: Final = {names.PLACEMENT: r"\{.*\}"}
_ANY: Final = r"\d{19}"


def predicate(domain: str, node: str) -> dict[str, str]:
    return {
        f"{domain}/predicate-gpu-idx-0": "0",
        f"{domain}/predicate-node": node,
        f"{domain}/predicate-time": _ANY,
        f"{domain}/gpu-assigned": "false",
    }


SYSTEMS: Final[Mapping[str, tuple[dict[str, Any], dict[str, str], list[str]]]] = {
    "gpu-manager": ({"core": 30, "memory": 20}, predicate("tencent.com", "NODE"), ["0"]),
    "tuya": ({"tuya_memory": 10}, predicate("tuya.com", "NODE"), ["0"]),
    "tuya-half-cards": ({"sgpu": 2}, {}, ["0", "1"]),
    "gpushare": (
        {"gpu_mem": 3},
        {
            "ALIYUN_COM_GPU_MEM_IDX": "0",
            "ALIYUN_COM_GPU_MEM_DEV": "15",
            "ALIYUN_COM_GPU_MEM_POD": "3",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": _ANY,
        },
        ["0"],
    ),
    "volcano": ({"gpu_memory": 2048}, {"volcano.sh/gpu-index": "0", "volcano.sh/predicate-time": _ANY}, ["0"]),
    "nvidia": ({"gpu": 2}, {}, ["0", "1"]),
    "time-slices": ({"gpu_shared": 1}, {}, ["0"]),
    "hami": ({"gpu": 2, "gpumem": 3000, "gpucores": 30}, {}, ["0", "1"]),
}


@pytest.mark.parametrize("asks", [{"gpu": 0}, {"core": 0, "memory": 0}, {"gpu_mem": 0}], ids=str)
def test_a_pod_that_requests_0_cards_gets_a_node_and_no_card(site: Site, asks: dict[str, int]) -> None:
    site.add_nodes("gpu-manager")
    stored = site.place(pod().asks(**asks))
    assert node_of(stored) and names.PLACEMENT not in annotations_of(stored)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_pod_is_bound_with_the_record_that_the_agent_of_its_node_reads(site: Site, system: str) -> None:
    asks, record, cards = SYSTEMS[system]
    (node,) = site.add_nodes(system)
    stored = site.place(pod().asks(**asks))
    assert node_of(stored) == node
    expected = {key: pattern.replace("NODE", node) for key, pattern in {**_OWN, **record}.items()}
    assert annotations_of(stored).keys() == expected.keys()
    assert [key for key, pattern in expected.items() if not re.fullmatch(pattern, annotations_of(stored)[key])] == []
    assert list(cards_of(stored).values()) == [cards]
    assert site.pods_by_card(node) == [["p"] if str(at) in cards else [] for at in range(4)]


def test_binpack_fills_a_card_before_it_uses_the_next(site: Site) -> None:
    (node,) = site.add_nodes("gpu-manager")
    for name in ("a", "b", "c", "d"):
        site.place(pod(name).asks(core=30, memory=10).annotated({names.ASK_POLICY: "binpack"}))
    assert sorted(map(len, site.pods_by_card(node))) == [0, 0, 1, 3]


def test_a_whole_card_is_not_shared(site: Site) -> None:
    (node,) = site.add_nodes("gpu-manager", cards=2)
    whole = site.place(pod("whole").asks(core=100))
    share = site.place(pod("share").asks(core=10, memory=4))
    (taken,), (shared,) = cards_of(whole).values(), cards_of(share).values()
    assert taken != shared
    assert [card["mode"] for card in sorted(site.cards(node), key=lambda card: [str(card["index"])] != taken)] == [
        "exclusive",
        "shared",
    ]


def test_an_unschedulable_pod_has_one_reason_and_is_placed_once_a_card_is_free(site: Site) -> None:
    """30 are free on each of two cards: the scheduler counts 60, but no card has 50."""
    site.add_nodes("gpu-manager", cards=2)
    for name in ("a", "b"):
        site.place(pod(name).asks(core=70, memory=10))
    site.create(pod("c").asks(core=50, memory=10))
    assert "no card has 50 per cent free" in site.wait_for_refusal("c")
    described = site.cluster.kubectl("-n", site.namespace, "describe", "pod", "c").stdout
    events = [line for line in described.splitlines() if "FailedScheduling" in line]
    assert {event.count("no card has 50 per cent free") for event in events} == {1}
    assert "MISSING" not in described
    site.delete("a")
    assert node_of(site.wait_until_bound("c"))


def test_containers_share_a_card_and_reuse_what_an_init_container_had(site: Site) -> None:
    (node,) = site.add_nodes("gpu-manager", cards=1)
    stored = site.place(pod().init(core=80, memory=40).asks(core=60, memory=30).asks(core=40, memory=20))
    assert {tuple(cards) for cards in cards_of(stored).values()} == {("0",)}
    (card,) = site.cards(node)
    assert (card["cores"]["used"], card["memory_mib"]["used"]) == (100, 50 * 256)


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_pod_of_kserve_is_bound(site: Site, name: str) -> None:
    """Several containers, a sidecar, a generated name and unknown fields; such a pod once failed with "code 500"."""
    (node,) = site.add_nodes("gpushare", cards=1)
    asking = pod().asks(gpu_mem=4).container(name="queue-proxy", ports=[{"containerPort": 8012}])
    built = asking.sidecar().init()
    made = built.labelled({"serving.knative.dev/revision": f"{name}-predictor-00001"}).annotated(
        {"autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev", "prometheus.kserve.io/port": "8080"}
    )
    nameless = {key: value for key, value in made.metadata.items() if key != "name"}
    generated = type(made)({**nameless, "generateName": f"{name}-predictor-00001-deployment-7f8-"}, made.spec)
    created = [site.create(generated, enableServiceLinks=False, hostUsers=True, os={"name": "linux"}) for _ in range(2)]
    stored = [site.wait_until_bound(each["metadata"]["name"]) for each in created]
    assert {node_of(each) for each in stored} == {node}
    assert [annotations_of(each)["ALIYUN_COM_GPU_MEM_IDX"] for each in stored] == ["0", "0"]
