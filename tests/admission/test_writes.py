"""A write is decoded once, and only where it is judged."""

from __future__ import annotations

from typing import Any, Final

import pytest

from admission.wire import MalformedReview, ObjectKind, ReviewRequest, UserInfo
from admission.writes import (
    MalformedObject,
    PodCreate,
    PodUpdate,
    QuotaWrite,
    RecordWrite,
    WorkloadWrite,
    Write,
    decode_write,
)
from halfcard import names
from tests.builders import Json, gpu, pod_of

from .judging import POLICY

KUBELET: Final = "system:node:n1"
POD: Final = pod_of(gpu())
MIRROR: Final = pod_of(gpu(), annotations={names.MIRROR_POD: "hash"})
DEPLOYMENT: Final = {"spec": {"template": POD}}
CONTROLLED: Final = {"metadata": {"ownerReferences": [{"kind": "Deployment", "controller": True}]}, **DEPLOYMENT}


def written(
    obj: Json | None, *, old: Json | None = None, kind: str = "Pod", user: str = "", **more: Any
) -> Write | None:
    operation = more.pop("operation", "CREATE" if old is None else "UPDATE")
    request = ReviewRequest(
        "1", operation, ObjectKind(kind), user_info=UserInfo(user), object=obj, old_object=old, **more
    )
    return decode_write(request, POLICY)


@pytest.mark.parametrize(
    ("kind", "subresource", "obj", "created", "updated"),
    [
        ("Pod", None, POD, PodCreate, PodUpdate),
        ("Pod", "", POD, PodCreate, PodUpdate),
        ("Pod", "status", POD, RecordWrite, RecordWrite),
        ("Binding", "binding", {}, RecordWrite, RecordWrite),
        ("Binding", None, {}, RecordWrite, RecordWrite),
        ("Deployment", None, DEPLOYMENT, WorkloadWrite, WorkloadWrite),
        ("ResourceQuota", None, {}, QuotaWrite, QuotaWrite),
    ],
)
def test_the_kind_and_the_operation_say_what_is_written(
    kind: str, subresource: str | None, obj: Json, created: type, updated: type
) -> None:
    assert type(written(obj, kind=kind, sub_resource=subresource)) is created
    assert type(written(obj, old=obj, kind=kind, sub_resource=subresource)) is updated


def test_an_old_object_is_not_read_where_the_object_is_new() -> None:
    assert type(written(POD, old={"spec": []}, operation="CREATE")) is PodCreate


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "ResourceQuota"])
def test_an_update_without_the_old_object_breaks_the_protocol(kind: str) -> None:
    with pytest.raises(MalformedReview, match="no old object"):
        written({}, kind=kind, operation="UPDATE")


@pytest.mark.parametrize("subresource", [None, "status"])
def test_a_mirror_pod_is_not_judged_where_its_kubelet_writes_it(subresource: str | None) -> None:
    assert written(MIRROR, user=KUBELET, sub_resource=subresource) is None
    assert written(MIRROR, user="alice", sub_resource=subresource) is not None
    assert written(POD, user=KUBELET, sub_resource=subresource) is not None


def test_objects_of_a_controller_are_not_judged() -> None:
    assert written(CONTROLLED, kind="ReplicaSet") is None
    assert type(written({**CONTROLLED, "spec": POD["spec"]})) is PodCreate


def test_quotas_decode_a_new_pod_once() -> None:
    write = written(pod_of(gpu(), priority=7))
    assert isinstance(write, PodCreate)
    assert write.stored is write.stored
    assert (write.stored.meta.name, write.stored.spec and write.stored.spec.priority) == ("train", 7)


def test_an_object_that_only_quotas_cannot_read_breaks_the_protocol() -> None:
    write = written(pod_of(gpu(), priority="high"))
    assert isinstance(write, PodCreate)
    with pytest.raises(MalformedObject, match="shape of a Pod") as malformed:
        _ = write.stored
    assert malformed.value.why.endswith("at `$.spec.priority`")
