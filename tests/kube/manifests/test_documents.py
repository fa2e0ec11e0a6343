from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.manifests.documents import Document, ManifestError, parse, parse_each, read_path, to_json

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: pod-%d, namespace: team-a}
spec:
  containers:
  - name: c
    image: busybox
    command: ["/bin/sh", "-c", "sleep 86400"]
    resources:
      limits:
        tencent.com/vcuda-core: 30
        tencent.com/vcuda-memory: 20
"""


def objects(text: str | bytes) -> list[dict[str, Any]]:
    return [document.obj for document in parse(text, "pod.yaml")]


def places(text: str) -> list[tuple[str, int]]:
    return [(document.kind, document.line) for document in parse(text, "pod.yaml")]


def refused(text: str | bytes, name: str = "pod.yaml") -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        list(parse(text, name))
    return caught.value


def test_every_document_has_its_file_and_line() -> None:
    assert list(parse("# first\nkind: A\n---\n\nkind: B\n", "x.yaml")) == [
        Document({"kind": "A"}, "x.yaml", 2),
        Document({"kind": "B"}, "x.yaml", 5),
    ]


def test_empty_documents_are_skipped() -> None:
    assert places("---\n---\n# nothing\n---\nkind: A\n---\n") == [("A", 5)]
    assert places("") == []


def test_a_list_is_split_and_every_item_has_its_line() -> None:
    text = "kind: List\nitems:\n- kind: A\n  a: 1\n- kind: B\n"
    assert places(text) == [("A", 3), ("B", 5)]


def test_items_of_a_typed_list_need_not_repeat_their_type() -> None:
    text = '{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]}'
    assert objects(text) == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]


def test_nested_lists_are_split() -> None:
    assert places("kind: List\nitems:\n- kind: List\n  items: [{kind: A}]\n- kind: B\n") == [
        ("A", 4),
        ("B", 5),
    ]


def test_json_documents_may_follow_each_other() -> None:
    assert places('{"kind": "A"}\n\n{"kind":\n"B"} {"kind": "C"}\n') == [("A", 1), ("B", 3), ("C", 4)]


def test_braces_of_yaml_are_no_json() -> None:
    assert places('{kind: A}\n---\n{"kind": "B"}\n') == [("A", 1), ("B", 3)]


def test_tags_and_quotes_make_text() -> None:
    text = 'kind: A\na: !!str 30\nb: "0.3"\nc: !!int "30"\nd: !!binary aGFsZg==\ne: "yes"\n2: x\non: x\n'
    assert objects(text) == [
        {"kind": "A", "a": "30", "b": "0.3", "c": 30, "d": "half", "e": "yes", "2": "x", "true": "x"}
    ]


def test_own_keys_win_over_merged_ones() -> None:
    text = "kind: A\nx: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz:\n  <<: [*x, *y]\n  a: 3\n"
    assert objects(text)[0]["z"] == {"a": 3, "b": 1, "c": 2}


def test_numbers_reach_the_api_server_digit_by_digit() -> None:
    text = "kind: A\ncores: 0.3\nother: 3e1\nbig: 123456789012345678901234567890\n"
    sent = b'{"kind":"A","cores":0.3,"other":3e1,"big":123456789012345678901234567890}'
    assert to_json(objects(text)[0]) == sent
    assert to_json(objects(sent)[0]) == sent


BOMB = "kind: A\na0: &a0 [ha, ha]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)
MISTAKES: dict[str, tuple[str | bytes, int, str]] = {
    "a key twice": ("kind: A\nspec:\n  a: 1\n  b: 2\n  a: 3\n", 5, 'the key "a" appears twice'),
    "a key twice in two spellings": ("kind: A\ntrue: 1\nyes: 2\n", 3, 'the key "true" appears twice'),
    "a key twice in JSON": ('{"kind": "A",\n "a": 1,\n "a": 2}', 3, 'duplicate key "a"'),
    "a key twice in a later JSON document": (
        '{"kind": "A"}\n{"kind": "A",\n"a": 1, "a": 2}',
        3,
        'duplicate key "a"',
    ),
    "a tab": ("kind: A\nspec:\n\ta: 1\n", 3, "a tab in the indentation; YAML indents with spaces"),
    "half a character of UTF-16": ("kind: A\n".encode("utf-16")[:-1], 1, "is no UTF-16"),
    "not UTF-8": (b"kind: A\nname: caf\xe9\n", 2, "the byte 0xe9 is no UTF-8"),
    "a control character": ("kind: A\nname: \x07\n", 2, "the control character U+0007"),
    "a half character in JSON": ('{"kind": "A",\n"a": "\\ud800"}', 2, "hex escape"),
    "not a number": ("kind: A\na: .nan\n", 2, "not-a-number"),
    "not a number in JSON": ('{"kind": "A",\n"a": NaN}', 2, "expected value"),
    "infinity in JSON": ('{"kind": "A",\n"a": -Infinity}', 2, "number"),
    "a truncated quote": ("kind: A\nname: 'x\n", 3, "close the quote"),
    "truncated JSON": ('{"kind": "A",\n"spec": {', 2, "no JSON"),
    "two colons": ("kind: A\nname: b: c\n", 2, "mapping values are not allowed"),
    "an open bracket": ("kind: A\nitems: [1,\nb: 2\n", 4, "close the bracket"),
    "an unknown alias": ("kind: A\na: *nobody\n", 2, "the alias *nobody has no finished anchor"),
    "an alias within itself": ("kind: A\na: &a [*a]\n", 2, "the alias *a has no finished anchor"),
    "aliases that multiply": (BOMB, 9, "aliases expand to more than"),
    "a merge of a text": ("kind: A\n<<: b\n", 2, "<< merges something that is no mapping"),
    "a key that is a list": ("kind: A\n? [a]\n: 1\n", 2, "a key that is no text"),
    "a key that is null": ("kind: A\n~: 1\n", 2, "a key that is no text"),
    "bad base64": ("kind: A\na: !!binary '@@'\n", 2, "no base64"),
    "deep brackets": ("kind: A\na: " + "[" * 100_000, 2, "levels of nesting"),
    "deep JSON": ('{"a":' * 100_000, 1, "levels of nesting"),
    "a list of nothing known": ("- a\n- b\n", 1, "a document is a mapping, got a list"),
    "a word": ("---\nhello\n", 2, 'a document is a mapping, got "hello"'),
    "no kind": ("kind: A\n---\nmetadata: {}\n", 3, "the object has no kind"),
    "an item without a kind": (
        "kind: List\nitems:\n- kind: A\n- metadata: {}\n",
        4,
        "the object has no kind",
    ),
    "an item that is no object": ("kind: List\nitems:\n- kind: A\n- 7\n", 4, 'got "7"'),
}


@pytest.mark.parametrize(("text", "line", "what"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_reported_with_file_line_and_fix(text: str | bytes, line: int, what: str) -> None:
    error = refused(text)
    assert str(error).startswith(f"pod.yaml:{line}: ")
    assert what in str(error)
    assert error.fix
    assert str(error).isprintable()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le-with-mark", "utf-16-be-with-mark"])
def test_a_byte_order_mark_names_the_encoding(encoding: str) -> None:
    name = encoding.removesuffix("-with-mark")
    text = ("" if name == encoding else "\ufeff") + "kind: A\nname: café\n"
    assert objects(text.encode(name)) == [{"kind": "A", "name": "café"}]
    assert objects("\ufeffkind: A\n") == [{"kind": "A"}]


READABLE_BESIDE: dict[str, tuple[str, list[str | int]]] = {
    "a broken document first": ("a: [\n---\nkind: B\n---\nkind: C\n", [2, "B", "C"]),
    "in the middle": ("kind: A\n---\nkind: B\nx: 'y\n---\nkind: C\n", ["A", 5, "C"]),
    "two": ("kind: A\n---\n\ta: 1\n---\nb: c: d\n---\nkind: C\n", ["A", 3, 5, "C"]),
    "a document that is no object": ("kind: A\n---\nmetadata: {}\n---\nkind: C\n", ["A", 3, "C"]),
    "an item that is none": ("kind: List\nitems:\n- kind: A\n- 7\n- kind: C\n", ["A", 4, "C"]),
    "an ambiguous JSON document": ('{"kind": "A", "a": 1, "a": 2}\n{"kind": "B"}', [1, "B"]),
    "YAML after broken JSON": ('{"kind": \n---\nkind: B\n', [2, "B"]),
    "a separator in a text is none": ("kind: A\nx: |\n  ---\n  y\nz: [\n", [6]),
}


@pytest.mark.parametrize(("text", "found"), READABLE_BESIDE.values(), ids=READABLE_BESIDE.keys())
def test_an_unreadable_document_stops_no_other(text: str, found: list[str | int]) -> None:
    each = parse_each(text, "x.yaml")
    assert [part.line if isinstance(part, ManifestError) else part.kind for part in each] == found


LINES = """\
kind: List
items:
- kind: Pod
  metadata:
    annotations: {"a.b/c": "1"}
  spec:
    containers:
    - name: one
    - name: two
      resources:
        limits:
          tencent.com/vcuda-core: 1
    - <<: {name: x}
      image: y
"""


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ('spec.containers[1].resources.limits["tencent.com/vcuda-core"]', 12),
        ("spec.containers[1].resources.requests", 10),  # the deepest that is there
        ('metadata.annotations["a.b/c"]', 5),
        ("spec.containers[7]", 7),
        ("spec.containers[2].image", 13),  # of a merged mapping only its beginning is known
        ("object", 3),
        ("", 3),
    ],
)
def test_a_field_has_its_line(where: str, line: int) -> None:
    (document,) = parse(LINES, "x.yaml")
    assert document.line_of(where) == line


def test_a_field_of_json_has_the_line_of_its_document() -> None:
    (document,) = parse('\n{"kind": "A",\n"spec": {}}', "x.json")
    assert document.line_of("spec") == 2


def test_ten_thousand_pods_are_read_in_well_under_three_seconds() -> None:
    text = "---\n".join(POD % number for number in range(10_000))
    begun = time.process_time()
    documents = list(parse(text, "pods.yaml"))
    assert time.process_time() - begun < 3
    assert len(documents) == 10_000
    assert documents[-1].line == 1 + 9_999 * (POD.count("\n") + 1)


def test_a_folder_is_read_recursively_in_a_fixed_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/z.yml", "a/..data/y.yaml", ".swap.yaml", "notes.txt", "c.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"kind": name}))
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.yaml")
    assert [document.kind for document in read_path(tmp_path)] == ["b.yaml", "c.json", "a/z.yml"]


def test_a_missing_file_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"gone\.yaml:1: cannot be read: No such file"):
        list(read_path(tmp_path / "gone.yaml"))


PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc<yn~1."), inner), max_leaves=10)


@given(JSON)
def test_json_values_are_read_unchanged(value: object) -> None:
    written = {"kind": "A", "value": value}
    assert objects(json.dumps(written)) == [written]
    assert objects(to_json(written)) == [written]


@given(st.text() | st.binary() | st.text("{}[]:-,'\"&*!<>|? \n\tka").map(lambda text: "kind: A\n" + text))
def test_any_text_is_read_or_refused_with_a_line_that_exists(text: str | bytes) -> None:
    lines = len(text.splitlines())
    assert 0 <= _refused_line(text) <= lines + 1


def _refused_line(text: str | bytes) -> int:
    """0 for a text that is read."""
    try:
        list(parse(text, "x"))
    except ManifestError as error:
        return error.line
    return 0
