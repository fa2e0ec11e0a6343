from __future__ import annotations

from typing import Any

import pytest

from admission.dispatch import STAGES
from admission.policy import AdmissionPolicy
from admission.verdict import ALLOWED
from admission.wire import MalformedReview
from halfcard import names
from tests.builders import Json, container, gpu, pod_of

from .judging import changed, codes, judge, mutate, validate

BAD = pod_of(gpu("1.5"), annotations={"halfcard.dev/card": "0"})
PATHS = sorted(STAGES)
ALL_CARDS = [{"name": names.VISIBLE_DEVICES, "value": "all"}]


def test_every_path_of_the_registration_has_a_decision() -> None:
    assert PATHS == [
        "/mutate/pods",
        "/mutate/resourcequotas",
        "/mutate/workloads",
        "/validate/pods",
        "/validate/records",
        "/validate/resourceclaims",
        "/validate/workloads",
    ]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("operation", ["DELETE", "CONNECT", "SOMETHING"])
def test_other_operations_pass_with_or_without_an_object(path: str, operation: str) -> None:
    assert judge(path, BAD, operation=operation) is ALLOWED
    assert judge(path, None, old=BAD, operation=operation) is ALLOWED


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["Eviction", "Service", "ConfigMap", "Scale", ""])
def test_unknown_kinds_are_allowed(path: str, kind: str) -> None:
    assert judge(path, {"spec": "any shape"}, kind=kind) is ALLOWED


@pytest.mark.parametrize("subresource", ["binding", "eviction", "log", "exec", "proxy"])
def test_other_subresources_are_allowed(subresource: str) -> None:
    for path in PATHS:
        for kind in ("Pod", "Deployment", "ResourceQuota"):
            assert judge(path, BAD, old=pod_of(), kind=kind, subresource=subresource) is ALLOWED


def judges(path: str, **context: Any) -> bool:
    return judge(path, BAD, **context) is not ALLOWED


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("kind", "subresource"), [("Binding", "binding"), ("Binding", ""), ("Pod", "status")])
def test_bindings_and_statuses_are_judged_by_one_path(path: str, kind: str, subresource: str) -> None:
    assert judges(path, kind=kind, subresource=subresource) is (path == names.VALIDATE_RECORDS_PATH)


@pytest.mark.parametrize(("kind", "subresource"), [("Pod", ""), ("Pod", "resize"), ("Binding", "status")])
def test_that_path_judges_nothing_else(kind: str, subresource: str) -> None:
    assert not judges(names.VALIDATE_RECORDS_PATH, kind=kind, subresource=subresource)


@pytest.mark.parametrize("subresource", ["ephemeralcontainers", "resize", "", None])
def test_updates_of_a_pod_and_these_subresources_are_judged(subresource: str | None) -> None:
    old = pod_of(container())
    new = changed(old, "spec", "ephemeralContainers", to=[container(env=ALL_CARDS)])
    for each in (mutate, validate):
        assert codes(each(new, old=old, subresource=subresource)) == ["HC021"]


def test_a_resize_restores_our_spelling_too() -> None:
    old = pod_of(gpu("30"))
    new = pod_of(gpu("0.3"))
    assert len(mutate(new, old=old, subresource="resize").changes) == 2


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("namespace", ["kube-system", "halfcard-system", "mine"])
def test_exempt_namespaces_are_never_judged(path: str, namespace: str) -> None:
    policy = AdmissionPolicy(exempt_namespaces=AdmissionPolicy().exempt_namespaces | {"mine"})
    for kind, obj in (("Pod", BAD), ("Deployment", {"spec": {"template": BAD}})):
        assert judge(path, obj, kind=kind, namespace=namespace, policy=policy) is ALLOWED


def test_an_object_without_a_namespace_is_judged() -> None:
    assert not validate(BAD, namespace=None).allowed


@pytest.mark.parametrize("path", PATHS)
def test_a_create_without_an_object_breaks_the_protocol(path: str) -> None:
    with pytest.raises(MalformedReview, match="object"):
        judge(path, None, operation="CREATE")


@pytest.mark.parametrize(
    ("path", "kind", "obj"),
    [
        (names.VALIDATE_PODS_PATH, "Pod", {"spec": []}),
        (names.VALIDATE_RECORDS_PATH, "Binding", {"metadata": {"annotations": ["a"]}}),
        (names.MUTATE_PODS_PATH, "Pod", {"spec": {"containers": {}}}),
        (names.MUTATE_PODS_PATH, "Pod", {"spec": {"containers": [None]}}),
        (names.MUTATE_PODS_PATH, "Pod", {"spec": {"containers": [{"resources": {"limits": {"a": True}}}]}}),
        (names.MUTATE_PODS_PATH, "Pod", {"metadata": {"annotations": {"a": 1}}}),
        (names.VALIDATE_WORKLOADS_PATH, "Deployment", {"spec": {"template": "none"}}),
        (names.MUTATE_WORKLOADS_PATH, "Deployment", {"metadata": {"ownerReferences": 1}}),
        (names.MUTATE_QUOTAS_PATH, "ResourceQuota", {"spec": {"hard": ["a"]}}),
    ],
)
def test_an_object_of_the_wrong_shape_breaks_the_protocol(path: str, kind: str, obj: Json) -> None:
    with pytest.raises(MalformedReview, match=kind):
        judge(path, obj, kind=kind)


@pytest.mark.parametrize(
    ("path", "kind", "old"),
    [
        (names.VALIDATE_PODS_PATH, "Pod", {"spec": []}),
        (names.MUTATE_WORKLOADS_PATH, "Deployment", {"spec": {"template": "none"}}),
        (names.MUTATE_QUOTAS_PATH, "ResourceQuota", {"spec": {"hard": ["a"]}}),
    ],
)
def test_an_old_object_of_the_wrong_shape_breaks_the_protocol(path: str, kind: str, old: Json) -> None:
    with pytest.raises(MalformedReview, match=kind):
        judge(path, {}, old=old, kind=kind)
