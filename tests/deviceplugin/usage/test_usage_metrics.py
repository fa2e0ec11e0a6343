from __future__ import annotations

from dataclasses import replace
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from deviceplugin.gpus.interface import Process
from deviceplugin.usage.usage_metrics import FAMILIES, write

from ..usages import NODE, SEED, T4_MIB, load, owner, tenant, tensorflow, usage

SEED_000: Final = """\
# HELP container_gpu_memory_total gpu memory usage in MiB
# TYPE container_gpu_memory_total gauge
container_gpu_memory_total{container_name="tensorflow",gpu_memory="gpu0",namespace="default",node="gpu1",\
pod_name="vcuda"} 0
container_gpu_memory_total{container_name="tensorflow",gpu_memory="total",namespace="default",node="gpu1",\
pod_name="vcuda"} 0
# HELP container_gpu_utilization gpu utilization
# TYPE container_gpu_utilization gauge
container_gpu_utilization{container_name="tensorflow",gpu="gpu0",namespace="default",node="gpu1",pod_name="vcuda"} 0
container_gpu_utilization{container_name="tensorflow",gpu="total",namespace="default",node="gpu1",pod_name="vcuda"} 0
# HELP container_request_gpu_memory request of gpu memory in MiB
# TYPE container_request_gpu_memory gauge
container_request_gpu_memory{container_name="tensorflow",namespace="default",node="gpu1",pod_name="vcuda",\
req_of_gpu_memory="total"} 1024
# HELP container_request_gpu_utilization request of gpu utilization
# TYPE container_request_gpu_utilization gauge
container_request_gpu_utilization{container_name="tensorflow",namespace="default",node="gpu1",pod_name="vcuda",\
req_of_gpu="total"} 0.10000000149011612
"""


def samples(text: str, name: str) -> list[tuple[dict[str, str], float]]:
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return [(sample.labels, sample.value) for sample in families[name].samples]


def test_the_four_gauges_have_gpu_managers_format() -> None:
    text = write(usage([SEED]))
    assert text.startswith(SEED_000)
    assert "\ncontainer_" not in text.removeprefix(SEED_000)


def test_usage_is_reported_per_card_and_in_total() -> None:
    seen = usage(
        [tenant(tensorflow(core=200), apps=["tensorflow"])],
        {"GPU-0": load(Process(7, 300, 5)), "GPU-1": load(Process(8, 200, 4))},
        {7: owner("vcuda"), 8: owner("vcuda")},
    )
    used = {labels["gpu_memory"]: value for labels, value in samples(write(seen), "container_gpu_memory_total")}
    assert used == {"gpu0": 300, "gpu1": 200, "total": 500}
    assert [value for _, value in samples(write(seen), "container_request_gpu_utilization")] == [2]
    assert [value for _, value in samples(write(seen), "container_request_gpu_memory")] == [2 * T4_MIB]


def test_a_card_reports_its_mode_health_grants_and_usage() -> None:
    sick = replace(NODE, cards=(NODE.cards[0], replace(NODE.cards[1], why_not="Xid 79")))
    text = write(usage([SEED], {"GPU-0": load(Process(7, 300, 5))}, node=sick))
    labels = {"card": "0", "node": "gpu1", "uuid": "GPU-0"}
    assert samples(text, "halfcard_card_info")[0] == ({**labels, "model": "Tesla T4"}, 1)
    assert samples(text, "halfcard_card_mode")[0] == ({**labels, "mode": "shared"}, 1)
    assert [value for _, value in samples(text, "halfcard_card_healthy")] == [1, 0]
    assert [value for _, value in samples(text, "halfcard_card_allocated_memory_mib")] == [1024, 0]
    assert [value for _, value in samples(text, "halfcard_card_allocated_cores_percent")] == [10, 0]
    assert samples(text, "halfcard_card_used_memory_mib") == [(labels, 300)], "of the other nothing is known"
    assert [value for _, value in samples(text, "halfcard_card_strangers")] == [1, 0]


def test_a_container_reports_its_limits_and_usage_on_each_card() -> None:
    text = write(usage([SEED], {"GPU-0": load(Process(7, 300, 5))}, {7: owner("vcuda")}))
    labels = {"card": "0", "container": "tensorflow", "namespace": "default", "node": "gpu1", "pod": "vcuda"}
    for name, value in (
        ("limit_memory_mib", 1024),
        ("limit_cores_percent", 10),
        ("used_memory_mib", 300),
        ("excess_memory_mib", 0),
        ("used_cores_percent", 5),
        ("processes", 1),
    ):
        assert samples(text, f"halfcard_container_{name}") == [(labels, value)]


def test_labels_are_sorted_alphabetically() -> None:
    assert all(list(family.labels) == sorted(family.labels) for family in FAMILIES)


@given(st.text(max_size=20))
def test_a_card_may_have_any_name(model: str) -> None:
    node = replace(NODE, cards=(replace(NODE.cards[0], model=model),))
    ((labels, _),) = samples(write(usage([], node=node)), "halfcard_card_info")
    assert labels["model"] == model
