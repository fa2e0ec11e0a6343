from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube.manifests.bound_text import Binding, bound, with_binding
from kube.manifests.documents import Document, ManifestError, parse

RECORD = {"halfcard.dev/placement": '{"v":1}', "tencent.com/gpu-assigned": "false"}
BINDING = Binding("gpu1", RECORD)

FORMS = {
    "block": "kind: Pod\nmetadata:\n  name: a  # ours\nspec:\n  containers: []\n",
    "block with annotations": "kind: Pod\nmetadata:\n  annotations:\n    x: y\n  name: a\nspec:\n  containers: []\n",
    "no line break at the end": "kind: Pod\nmetadata:\n  name: a\nspec:\n  containers: []",
    "flow": "kind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
    "flow with annotations": 'kind: Pod\nmetadata: {name: a, annotations: {"x": y}}\nspec: {containers: []}\n',
    "empty annotations": "kind: Pod\nmetadata: {name: a, annotations: {}}\nspec: {containers: []}\n",
    "annotations of null": "kind: Pod\nmetadata:\n  name: a\n  annotations: # none\nspec:\n  containers: []\n",
    "annotations of ~": "kind: Pod\nmetadata:\n  name: a\n  annotations: ~\nspec:\n  containers: []\n",
    "several documents": (
        "# first\nkind: Node\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n"
    ),
    "of one name in two namespaces": (
        "kind: Pod\nmetadata: {name: a, namespace: other}\nspec: {containers: []}\n"
        "---\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n"
    ),
    "a list": "kind: List\nitems:\n- kind: Pod\n  metadata:\n    name: a\n  spec:\n    containers: []\n- kind: Node\n",
    "a list of pods": "kind: PodList\nitems:\n- metadata: {name: a}\n  spec: {containers: []}\n",
    "JSON": json.dumps({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}, indent=4),
    "JSON with tabs": '{"kind": "Pod",\n\t"metadata": {"name": "a"},\n\t"spec": {"containers": []}}',
    "JSON in one line": json.dumps({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}),
    "an anchor": "kind: Pod\nmetadata: &m\n  name: a\nspec: &s\n  containers: []\n",
    "wide letters before it": "# 卡卡卡 🙂\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
    "Windows' line ends": "kind: Pod\r\nmetadata:\r\n  name: a\r\nspec:\r\n  containers: []\r\n",
}


def the_pod(text: str) -> Document:
    pods = [each for each in parse(text, "pods.yaml") if each.kind == "Pod"]
    return next(each for each in pods if "namespace" not in each.obj["metadata"])


@pytest.mark.parametrize("form", FORMS)
def test_a_binding_is_added_to_the_pod_and_nothing_else_changes(form: str) -> None:
    text = FORMS[form]
    pod = the_pod(text)

    changed = with_binding(text, pod, BINDING)

    wanted = [bound(each.obj, BINDING) if each.obj == pod.obj else each.obj for each in parse(text, "")]
    assert [each.obj for each in parse(changed, "")] == wanted
    assert is_subsequence(text.replace("~", ""), changed)


def test_a_binding_reads_as_people_write() -> None:
    changed = with_binding(FORMS["block"], the_pod(FORMS["block"]), Binding("gpu1", {"a/b": "c"}))
    assert changed == (
        'kind: Pod\nmetadata:\n  annotations: {"a/b": "c"}\n  name: a  # ours\n'
        'spec:\n  nodeName: "gpu1"\n  containers: []\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "kind: Pod\nmetadata: {name: a}\nspec: {containers: [], nodeName: ''}\n",
        "x: &s {containers: []}\nkind: Pod\nmetadata: {name: a}\nspec: *s\n",
        'kind: Pod\nmetadata: {name: a, annotations: {"halfcard.dev/placement": forged}}\nspec: {containers: []}\n',
        "kind: Pod\nmetadata: {<<: {name: a}}\nspec: {containers: []}\n",
        "kind: Pod\nmetadata: {name: a}\n",
    ],
)
def test_a_text_in_which_a_binding_would_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(ManifestError, match=r"pods.yaml:\d+: the binding cannot be written .*; write its metadata"):
        with_binding(text, the_pod(text), BINDING)


_keys = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=8)
_words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
_trees: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=12,
)


@given(
    spec=st.dictionaries(_keys, _trees, min_size=1, max_size=4),
    metadata=st.dictionaries(_keys, _trees, max_size=3),
    flow=st.sampled_from([True, False, None]),
)
def test_any_pod_that_is_written_means_itself_and_the_binding(
    spec: Mapping[str, Any], metadata: Mapping[str, Any], *, flow: bool | None
) -> None:
    obj = {"kind": "Pod", "spec": dict(spec), "metadata": {**metadata, "name": "a"}}
    text = yaml.safe_dump_all([{"kind": "Other"}, obj], default_flow_style=flow, allow_unicode=True, width=40)
    pod = list(parse(text, ""))[1]

    try:
        changed = with_binding(text, pod, BINDING)
    except ManifestError:
        assert "nodeName" in spec or "annotations" in metadata
        return
    assert [each.obj for each in parse(changed, "")] == [{"kind": "Other"}, bound(pod.obj, BINDING)]


def is_subsequence(text: str, of: str) -> bool:
    rest = iter(of)
    return all(each in rest for each in text)
