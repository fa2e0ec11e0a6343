from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.cards import Card, Node
from halfcard.cluster_view import ClusterView, ImplausibleNode, read_node


def node(capacity: object, labels: object = None, name: str = "n1") -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"capacity": capacity}}


def cards(count: int, memory_mib: int | None, model: str = "") -> Node:
    return Node("n1", tuple(Card(index, model, memory_mib) for index in range(count)))


def sliced(count: int, memory_mib: int | None, model: str, resource: str, replicas: int) -> Node:
    found = tuple(Card(index, model, memory_mib, replicas=replicas) for index in range(count))
    return Node("n1", found, slices=resource)


T4 = {
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.memory": "15360",
    "nvidia.com/gpu.product": "Tesla-T4-SHARED",
    "nvidia.com/gpu.replicas": "10",
}

BELIEVED = {
    "gpu-manager: four cards of 59 units": (
        node({"tencent.com/vcuda-core": "400", "tencent.com/vcuda-memory": "236"}),
        cards(4, 15104),
    ),
    "gpu-manager: numbers instead of strings, and the API server's own spelling of thousands": (
        node({"tencent.com/vcuda-core": 1000, "tencent.com/vcuda-memory": "1k"}),
        cards(10, 25600),
    ),
    "gpu-manager: a remainder is ignored": (
        node({"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "119"}),
        cards(2, 59 * 256),
    ),
    "gpu-manager: no memory published, the label tells it": (
        node({"tencent.com/vcuda-core": "100"}, {"nvidia.com/gpu.memory": "15360"}),
        cards(1, 15360),
    ),
    "gpu-manager: no memory published at all": (node({"tencent.com/vcuda-core": "100"}), cards(1, None)),
    "gpu-manager under another domain": (
        node({"tuya.com/vcuda-core": "200", "tuya.com/vcuda-memory": "172"}),
        cards(2, 22016),
    ),
    "mixed node, all free": (
        node({"nvidia.com/gpu": "4", "tuya.com/sgpu": "8", "tuya.com/vcuda-memory": "344"}),
        cards(4, 22016),
    ),
    "mixed node without half cards": (
        node({"nvidia.com/gpu": "4", "tuya.com/vcuda-memory": "344"}),
        cards(4, 22016),
    ),
    "mixed node, two cards locked to halves: the size is not guessed": (
        node({"nvidia.com/gpu": "2", "tuya.com/sgpu": "8", "tuya.com/vcuda-memory": "172"}),
        cards(4, None),
    ),
    "mixed node, locked, but labelled": (
        node(
            {"nvidia.com/gpu": "1", "tuya.com/sgpu": "6", "tuya.com/vcuda-memory": "172"},
            {"nvidia.com/gpu.count": "4", "nvidia.com/gpu.memory": "22731"},
        ),
        cards(4, 22731),
    ),
    "gpushare: GiB": (node({"aliyun.com/gpu-mem": "14", "aliyun.com/gpu-count": "1"}), cards(1, 14336)),
    "volcano: MiB": (
        node({"volcano.sh/gpu-memory": "65020", "volcano.sh/gpu-number": "2"}),
        cards(2, 32510),
    ),
    "nvidia without labels": (node({"nvidia.com/gpu": "8"}), cards(8, None)),
    "nvidia with labels": (
        node(
            {"nvidia.com/gpu": "2"},
            {"nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        ),
        cards(2, 81559, "NVIDIA-A100-SXM4-80GB"),
    ),
    "nvidia, time-sliced under the same name": (
        node({"nvidia.com/gpu": "20"}, T4),
        sliced(2, 15360, "Tesla-T4", "nvidia.com/gpu", 10),
    ),
    "nvidia, time-sliced under a name of its own": (
        node({"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "20"}, T4),
        sliced(2, 15360, "Tesla-T4", "nvidia.com/gpu.shared", 10),
    ),
    "nvidia, replicas known but not the count": (
        node({"nvidia.com/gpu": "20"}, {"nvidia.com/gpu.replicas": "10"}),
        sliced(2, None, "", "nvidia.com/gpu", 10),
    ),
    "nvidia, the count known but not the replicas": (
        node({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu.count": "2"}),
        sliced(2, None, "", "nvidia.com/gpu", 4),
    ),
    "the finest books win over the label of the same card": (
        node({"tencent.com/vcuda-core": "100", "tencent.com/vcuda-memory": "59", "nvidia.com/gpu": "1"}, T4),
        cards(1, 15104, "Tesla-T4"),
    ),
    "a plugin that left: the name stays with 0": (
        node({"tencent.com/vcuda-core": "0", "tencent.com/vcuda-memory": "0", "nvidia.com/gpu": "2"}),
        cards(2, None),
    ),
    "no GPU": (node({"ephemeral-storage": "32", "pods": "110"}), cards(0, None)),
    "nothing published yet": (node(None), cards(0, None)),
    "capacity is no mapping": (node(["x"]), cards(0, None)),
}


@pytest.mark.parametrize(("obj", "expected"), BELIEVED.values(), ids=BELIEVED.keys())
def test_cards_are_read_from_the_resources_of_every_dialect(obj: dict[str, Any], expected: Node) -> None:
    assert read_node(obj) == expected


ODD = {
    "half a card": ({"tencent.com/vcuda-core": "50"}, "100 for each card"),
    "a card and a half": (
        {"tencent.com/vcuda-core": "150", "tencent.com/vcuda-memory": "59"},
        "100 for each card",
    ),
    "negative": ({"nvidia.com/gpu": "-1"}, 'got "-1"'),
    "huge": ({"nvidia.com/gpu": "1E"}, 'got "1000000000000000000"; a node has at most 1024'),
    "a huge card": (
        {"tencent.com/vcuda-core": "100", "tencent.com/vcuda-memory": "1P"},
        "memory of one card",
    ),
    "more digits than a number has": ({"nvidia.com/gpu": "9" * 5000}, "whole number"),
    "a number longer than Python spells": ({"nvidia.com/gpu": 10**5000}, "whole number"),
    "garbage": ({"aliyun.com/gpu-mem": "fourteen\n", "aliyun.com/gpu-count": "1"}, 'got "fourteen\\n"'),
    "a fraction": ({"nvidia.com/gpu": "500m"}, 'got "500m"'),
    "a list": ({"nvidia.com/gpu": [1]}, "whole number"),
    "a boolean": ({"nvidia.com/gpu": True}, "whole number"),
    "null": ({"nvidia.com/gpu": None}, "whole number"),
    "memory without a count": ({"aliyun.com/gpu-mem": "14"}, "aliyun.com/gpu-count, which is missing"),
    "volcano's memory without a count": (
        {"volcano.sh/gpu-memory": "14"},
        "volcano.sh/gpu-number, which is missing",
    ),
    "more slices than anybody cuts": ({"nvidia.com/gpu": "1000000"}, "a node has at most 1024"),
    "units without cards": ({"tuya.com/vcuda-memory": "344"}, "beside the number of cards"),
}


@pytest.mark.parametrize(("capacity", "sentence"), ODD.values(), ids=ODD.keys())
def test_an_impossible_capacity_makes_the_node_implausible_with_a_reason(capacity: object, sentence: str) -> None:
    odd = read_node(node(capacity))
    assert isinstance(odd, ImplausibleNode)
    assert odd.name == "n1"
    assert sentence in odd.why
    assert str(odd).isprintable()


def test_an_unreadable_label_that_is_needed_makes_the_node_implausible() -> None:
    odd = read_node(node({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu.memory": "much"}))
    assert isinstance(odd, ImplausibleNode)
    assert 'metadata.labels["nvidia.com/gpu.memory"]: got "much"' in odd.why


def test_a_node_without_a_name_is_implausible() -> None:
    assert isinstance(read_node({"status": {"capacity": {"nvidia.com/gpu": "1"}}}), ImplausibleNode)


ANNOTATED: Final[dict[str, tuple[dict[str, str], tuple[Card, ...]]]] = {
    "our agent's list wins over capacity": (
        {names.INVENTORY: '[{"index":3,"uuid":"GPU-x","memory_mib":100}]'},
        (Card(3, "", 100, "GPU-x"),),
    ),
    "what HAMi's agent serves is HAMi's scheduler's to give away": ({names.HAMI_REGISTER: "[]"}, ()),
    "until our agent serves the node": (
        {names.HAMI_REGISTER: "[]", names.INVENTORY: '[{"index":0}]'},
        (Card(0, "", None),),
    ),
    "cards cordoned by index or uuid": (
        {
            names.INVENTORY: '[{"index":0,"uuid":"GPU-x"},{"index":1},{"index":2,"unhealthy":"Xid 79"}]',
            names.CORDONED_CARDS: " GPU-x, 2 ,7,",
        },
        (Card(0, "", None, "GPU-x", why_not="cordoned"), Card(1, "", None), Card(2, "", None, why_not="Xid 79")),
    ),
    "a cordon of a card known by capacity alone": (
        {names.CORDONED_CARDS: "1"},
        (Card(0, "", None), Card(1, "", None, why_not="cordoned")),
    ),
}


@pytest.mark.parametrize(("annotations", "expected"), ANNOTATED.values(), ids=ANNOTATED)
def test_cards_are_read_from_the_annotations_of_a_node(annotations: dict[str, str], expected: tuple[Card, ...]) -> None:
    obj = node({"nvidia.com/gpu": "2"})
    obj["metadata"]["annotations"] = annotations
    found = read_node(obj)
    assert isinstance(found, Node)
    assert found.cards == expected


SOLD: Final[dict[str, tuple[dict[str, str], str, str]]] = {
    "a mixed node, or one where HAMi's slots are sold": ({"nvidia.com/gpu": "8"}, '[{"index":0},{"index":1}]', ""),
    "slices that have not been published yet": ({}, '[{"index":0,"replicas":4}]', "nvidia.com/gpu"),
    "slices under a name of their own, beside whole cards": (
        {"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "4"},
        '[{"index":0,"replicas":4,"sold_as":"nvidia.com/gpu.shared"}]',
        "nvidia.com/gpu.shared",
    ),
    "slices under a name of their own, while all cards are used in other ways": (
        {"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "0"},
        '[{"index":0,"replicas":4,"sold_as":"nvidia.com/gpu.shared"}]',
        "nvidia.com/gpu.shared",
    ),
    "slices that were sold under another name yesterday": (
        {"nvidia.com/gpu": "4", "nvidia.com/gpu.shared": "2"},
        '[{"index":0,"replicas":4}]',
        "nvidia.com/gpu",
    ),
    "an unreadable count": ({"nvidia.com/gpu": "many"}, '[{"index":0}]', ""),
}


@pytest.mark.parametrize(("capacity", "inventory", "slices"), SOLD.values(), ids=SOLD)
def test_time_slices_in_the_inventory_are_not_guessed_from_counts(
    capacity: dict[str, str], inventory: str, slices: str
) -> None:
    obj = node(capacity)
    obj["metadata"]["annotations"] = {names.INVENTORY: inventory}
    found = read_node(obj)
    assert isinstance(found, Node)
    assert found.slices == slices


def test_an_impossible_inventory_makes_the_node_implausible() -> None:
    obj = node({"nvidia.com/gpu": "2"})
    obj["metadata"]["annotations"] = {names.INVENTORY: "[{}]"}
    odd = read_node(obj)
    assert isinstance(odd, ImplausibleNode) and "halfcard.dev/inventory" in odd.why


@pytest.mark.parametrize("label", names.MODEL_LABELS)
def test_the_model_of_cards_is_read_from_any_known_label(label: str) -> None:
    found = read_node(node({"nvidia.com/gpu": "2"}, {label: "Tesla-T4"}))
    assert isinstance(found, Node) and [card.model for card in found.cards] == ["Tesla-T4", "Tesla-T4"]


@pytest.mark.parametrize("label", names.POOL_LABELS)
def test_pool_address_and_allocatable_cpu_and_memory_are_read(label: str) -> None:
    obj = node({"cpu": "8", "memory": "16Gi"}, {label: "training"})
    obj["status"]["allocatable"] = {"cpu": "7900m", "memory": "15Gi"}
    obj["status"]["addresses"] = [{"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "10.0.0.7"}]
    found = read_node(obj)
    assert isinstance(found, Node)
    assert (found.pool, found.address, found.cpu_milli, found.memory_mib) == ("training", "10.0.0.7", 7900, 15 * 1024)


DEEP: Final[list[Any]] = []
for _ in range(5000):
    DEEP[:] = [list(DEEP)]

NO_OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "a number of thousands of digits for a name": {"metadata": {"name": 10**5000}},
    "lists in lists for a name": {"metadata": {"name": DEEP}},
    "lists in lists for a capacity": node({"nvidia.com/gpu": DEEP, "cpu": DEEP}),
    "lists in lists for a label": node({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu.product": DEEP}),
    "addresses that are none": {"metadata": {"name": "n"}, "status": {"addresses": [1, {}, {"type": "InternalIP"}]}},
    "a cordon that is none": {"metadata": {"name": "n", "annotations": {names.CORDONED_CARDS: 1}}},
    "an inventory that is none": {"metadata": {"name": "n", "annotations": {names.INVENTORY: [1]}}},
}


@pytest.mark.parametrize("obj", NO_OBJECTS.values(), ids=NO_OBJECTS)
def test_an_invalid_object_is_a_node_or_a_problem(obj: dict[str, Any]) -> None:
    assert isinstance(read_node(obj), Node | ImplausibleNode)


def test_gpushare_counts_in_the_unit_of_its_plugin() -> None:
    obj = node({"aliyun.com/gpu-mem": "30218", "aliyun.com/gpu-count": "2"})
    assert read_node(obj, CapacityRules(aliyun_unit_mib=1)) == cards(2, 15109)


def test_gpu_managers_resources_are_read_under_a_custom_domain() -> None:
    obj = node({"gpu.example.com/vcuda-core": "100", "gpu.example.com/vcuda-memory": "8"})
    assert read_node(obj) == cards(0, None)
    assert read_node(obj, CapacityRules(vcuda_prefixes=("gpu.example.com",))) == cards(1, 2048)


def test_the_largest_card_is_the_largest_known() -> None:
    nodes = (cards(2, 15104), cards(1, 81559), cards(8, None))
    assert ClusterView(nodes=nodes).largest_card_mib == 81559


@pytest.mark.parametrize("nodes", [(), (cards(0, None),), (cards(8, None),)])
def test_without_any_known_memory_there_is_no_largest_card(nodes: tuple[Node, ...]) -> None:
    assert ClusterView(nodes=nodes).largest_card_mib is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KNOWN = st.sampled_from(
    [
        "tencent.com/vcuda-core",
        "tencent.com/vcuda-memory",
        "tuya.com/vcuda-memory",
        "tuya.com/sgpu",
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "aliyun.com/gpu-mem",
        "aliyun.com/gpu-count",
        "volcano.sh/gpu-memory",
        "volcano.sh/gpu-number",
    ]
)
AMOUNT = st.integers(-10, 10**12) | st.integers(0, 2000).map(str) | JSON


@given(st.dictionaries(KNOWN, AMOUNT, max_size=4), JSON)
def test_any_capacity_and_labels_give_a_node_or_a_problem(capacity: object, labels: object) -> None:
    read = read_node(node(capacity, labels))
    if isinstance(read, Node):
        assert all(card.memory_mib is None or card.memory_mib > 0 for card in read.cards)
    else:
        assert read.why


METADATA = JSON | st.fixed_dictionaries(
    {"name": st.sampled_from(["n1", ""]) | JSON},
    optional={
        "labels": JSON | st.dictionaries(st.sampled_from([*T4, *names.POOL_LABELS, *names.MODEL_LABELS]), AMOUNT),
        "annotations": JSON
        | st.dictionaries(st.sampled_from([names.INVENTORY, names.CORDONED_CARDS]), JSON | st.just('[{"index":1}]')),
    },
)
STATUS = JSON | st.fixed_dictionaries(
    {"capacity": JSON | st.dictionaries(KNOWN, AMOUNT, max_size=3)},
    optional={"allocatable": JSON | st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNT), "addresses": JSON},
)


@given(METADATA, STATUS)
def test_any_object_gives_a_node_or_a_problem(metadata: object, status: object) -> None:
    assert isinstance(read_node({"metadata": metadata, "status": status}), Node | ImplausibleNode)
