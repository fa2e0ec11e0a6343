"""Objects of an API server become the observations that the checks read, in any valid spelling."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from cli.diagnosis.observations import (
    config_map_of,
    configuration_file,
    data_changed,
    node_snapshot,
    pod_snapshots,
    ready_endpoints,
    refusal,
    secret_data,
)
from cli.diagnosis.snapshot import NotOfferedEvent, PodSnapshot
from extender.state import State
from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.cards import Card
from halfcard.dialects import Dialects
from halfcard.dra.driver_nodes import DeviceClass, ResourceSlice
from halfcard.inventory import write_inventory
from halfcard.pod.reported_pod import ReportedPod
from tests.builders import PodBuilder, device_class, pod, resource_slice
from tests.extender.populated import node, state_of

NOON: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
CARDS: Final = (Card(0, "T4", 15109, "GPU-0"), Card(1, "T4", 15109, "GPU-1", why_not="Xid 79"))

INVENTORIES: Final[dict[str, tuple[dict[str, str], int | None]]] = {
    "none": ({}, None),
    "two cards, one of them sick": ({names.INVENTORY: write_inventory(CARDS)}, 1),
    "garbage": ({names.INVENTORY: "garbage"}, 0),
}


@pytest.mark.parametrize(("annotations", "cards"), INVENTORIES.values(), ids=INVENTORIES.keys())
def test_the_cards_of_a_node_are_the_healthy_ones(annotations: dict[str, str], cards: int | None) -> None:
    assert node_snapshot({"metadata": {"name": "n", "annotations": annotations}}).cards == cards


def test_a_node_offers_every_resource_except_cpu_and_memory() -> None:
    status = {"allocatable": {"cpu": "8", "memory": "1Gi", names.VCUDA_CORE: "2k", names.VCUDA_MEMORY: "junk"}}
    assert node_snapshot({"metadata": {"name": "n"}, "status": status}).offers == {
        names.VCUDA_CORE: 2000,
        names.VCUDA_MEMORY: 0,
    }


# --- pods ------------------------------------------------------------------------------------------------------------

SHARE: Final = pod("p").asks(core=30, memory=20)
RECORD: Final = {names.PLACEMENT: '{"node":"n","cards":{"containers-0":["0"]}}'}
SEEN: Final[dict[str, tuple[PodBuilder, tuple[Any, ...] | None]]] = {
    "a bound one with a record": (SHARE.annotated(RECORD).specified(nodeName="n"), (True, True, ())),
    "a bound one with an unreadable record": (
        SHARE.annotated({names.PLACEMENT: "junk"}).specified(nodeName="n"),
        (True, True, ()),
    ),
    "a bound one without a record": (SHARE.specified(nodeName="n"), (True, False, ())),
    "a waiting one": (SHARE, (True, False, ())),
    "a waiting one with a record": (SHARE.annotated(RECORD), (True, True, (names.PLACEMENT,))),
    "a waiting one that asks for nothing and has a record": (
        pod("p").container().annotated(RECORD),
        (False, False, (names.PLACEMENT,)),
    ),
    "a waiting one with a mark of the extender": (SHARE.annotated({names.FENCE: "1"}), (True, False, ())),
    "one that asks for nothing": (pod("p").container().specified(nodeName="n"), None),
}


@pytest.mark.parametrize(("built", "expected"), SEEN.values(), ids=SEEN.keys())
def test_a_pod_is_reduced_to_its_requests_and_its_record(built: PodBuilder, expected: tuple[Any, ...] | None) -> None:
    manifest = built.manifest
    manifest["metadata"] |= {"uid": "u", "namespace": "team"}
    stored = msgspec.convert(manifest, ReportedPod)
    state = State(Dialects(), CapacityRules())
    state.put_pod(stored)
    found = [(each.asks, each.is_recorded, each.forged) for each in pod_snapshots(state, {"u": stored}, NOON)]
    assert found == ([] if expected is None else [expected])


def seen(built: PodBuilder, **status: Any) -> PodSnapshot:
    manifest = built.manifest
    manifest["metadata"] |= {"uid": "u", "namespace": "team"}
    stored = msgspec.convert(manifest | {"status": status}, ReportedPod)
    state = State(Dialects(), CapacityRules())
    state.put_pod(stored)
    (found,) = pod_snapshots(state, {"u": stored}, NOON)
    return found


def test_a_record_by_the_agent_shows_that_the_extender_was_not_called() -> None:
    record = '{"node":"n","cards":{"containers-0":["0"]},"by":"%s"}'
    by_agent, by_extender = (
        seen(SHARE.annotated({names.PLACEMENT: record % writer}).specified(nodeName="n"))
        for writer in ("agent", "extender")
    )
    assert (by_agent.is_recorded, by_agent.is_past_extender) == (True, True)
    assert (by_extender.is_recorded, by_extender.is_past_extender) == (True, False)
    assert by_agent.resources == (names.VCUDA_CORE, names.VCUDA_MEMORY)


def test_a_waiting_pod_has_the_words_of_its_scheduler() -> None:
    conditions = [
        {"type": "PodReadyToStartContainers", "status": "False", "message": "not this one"},
        {"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": "EOF"},
    ]
    assert seen(SHARE, phase="Pending", conditions=conditions).message == "EOF"
    assert seen(SHARE, phase="Pending", conditions=[{**conditions[1], "message": None}]).message == ""
    assert seen(SHARE, phase="Pending").message == ""
    assert seen(SHARE.specified(nodeName="n"), conditions=conditions).message == ""


def test_a_pod_that_no_scheduler_tries_is_noticed_after_a_minute() -> None:
    times = {"2026-11-21T11:59:00Z": True, "2026-11-21T11:59:01Z": False}
    found = {
        when: seen(pod("p").asks(core=50, memory=20).created("team", creationTimestamp=when)).is_untried
        for when in times
    }
    assert found == times


# --- other objects ---------------------------------------------------------------------------------------------------


def test_endpoints_are_counted_by_service_and_ready_without_a_condition() -> None:
    def slice_of(service: str, ready: list[bool | None]) -> dict[str, Any]:
        labels = {"kubernetes.io/service-name": service}
        return {"metadata": {"labels": labels}, "endpoints": [{"conditions": {"ready": each}} for each in ready]}

    slices = [slice_of("a", [True, None, False]), slice_of("a", [True]), slice_of("b", [False]), {"metadata": {}}]
    assert ready_endpoints(slices) == {"a": 3, "b": 0, "": 0}


def test_an_entry_of_a_secret_that_is_not_base64_is_empty() -> None:
    assert secret_data({"data": {"a": "YQ==", "b": "a"}}) == {"a": b"a", "b": b""}


def test_settings_changed_when_their_content_did_and_not_their_labels() -> None:
    managed = [
        {"time": "2026-11-21T12:00:00Z", "fieldsV1": {"f:data": {}}},
        {"time": "2026-11-21T13:00:00Z", "fieldsV1": {"f:metadata": {}}},
    ]
    assert data_changed({"metadata": {"managedFields": managed}}) == NOON
    assert data_changed({"metadata": {}}) is None


EVENTS: Final[list[dict[str, Any]]] = [
    {"metadata": {}, "lastTimestamp": "2026-11-21T12:00:00Z"},
    {"metadata": {}, "lastTimestamp": None, "eventTime": "2026-11-21T12:00:00.000000Z"},
    {"metadata": {"creationTimestamp": "2026-11-21T12:00:00Z"}},
]


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_has_its_time_in_one_of_three_places(event: dict[str, Any]) -> None:
    seen = refusal({**event, "involvedObject": {"name": "n"}, "message": "m"})
    assert seen == NotOfferedEvent("n", "m", NOON)


# --- kube-scheduler --------------------------------------------------------------------------------------------------

COMMANDS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "joined": ({"command": ["kube-scheduler", "--config=/etc/s.yaml"]}, "/etc/s.yaml"),
    "apart": ({"command": ["kube-scheduler"], "args": ["--v=2", "--config", "/etc/s.yaml"]}, "/etc/s.yaml"),
    "none": ({"command": ["kube-scheduler", "--kubeconfig=/etc/k"]}, ""),
    "image's own": ({}, ""),
}


@pytest.mark.parametrize(("container", "file"), COMMANDS.values(), ids=COMMANDS.keys())
def test_the_file_of_a_scheduler_is_read_from_its_command(container: dict[str, Any], file: str) -> None:
    assert configuration_file({"spec": {"containers": [container]}}) == file


MOUNTS: Final[dict[str, tuple[dict[str, str], tuple[str, str] | None]]] = {
    "a folder": ({"name": "v", "mountPath": "/etc/scheduler/"}, ("conf", "s.yaml")),
    "a single entry": ({"name": "v", "mountPath": "/etc/scheduler/s.yaml", "subPath": "x.yaml"}, ("conf", "x.yaml")),
    "another folder": ({"name": "v", "mountPath": "/etc/sched"}, None),
    "a folder of the node": ({"name": "w", "mountPath": "/etc/scheduler"}, None),
}


@pytest.mark.parametrize(("mount", "expected"), MOUNTS.values(), ids=MOUNTS.keys())
def test_a_file_may_come_from_a_config_map(mount: dict[str, str], expected: tuple[str, str] | None) -> None:
    volumes = [{"name": "v", "configMap": {"name": "conf"}}, {"name": "w", "hostPath": {"path": "/"}}]
    scheduler = {"spec": {"containers": [{"volumeMounts": [mount]}], "volumes": volumes}}
    assert config_map_of(scheduler, "/etc/scheduler/s.yaml") == expected


def test_a_pod_on_a_node_of_a_driver_needs_no_record() -> None:
    state = state_of([node("dra1", 0), node("gpu1")])
    state.driver_nodes.put(msgspec.convert(device_class(), DeviceClass))
    state.driver_nodes.put(msgspec.convert(resource_slice("dra1"), ResourceSlice))
    pods = {name: reported(pod(name).asks(gpu=1).on(on), name) for name, on in (("a", "dra1"), ("b", "gpu1"))}
    for each in pods.values():
        state.put_pod(each)
    assert [each.title for each in pod_snapshots(state, pods, NOON)] == ["team/b"]


def reported(built: PodBuilder, uid: str) -> ReportedPod:
    return msgspec.convert(built.created("team", uid=uid).manifest, ReportedPod)
