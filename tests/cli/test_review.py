from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jsonpatch
import pytest
import yaml

from .command import ROOT, halfcard, too_wide

GOOD = """\
apiVersion: v1
kind: Pod
metadata: {name: good}
spec:
  containers:
  - name: main
    resources: {requests: {tencent.com/vcuda-core: 0.3, tencent.com/vcuda-memory: 5Gi}}
"""
BAD = GOOD.replace("good", "bad").replace("0.3", "1.5")
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a}
spec:
  template:
    spec:
      containers:
      - name: main
        resources: {limits: {tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 80}}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: gpu1}
status: {capacity: {tencent.com/vcuda-core: 400, tencent.com/vcuda-memory: 236}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    return tmp_path


def test_everything_allowed_exits_0(folder: Path) -> None:
    done = halfcard("review", "-f", str(folder / "good.yaml"))

    assert (done.code, done.err) == (0, "")
    assert "allowed  Pod default/good" in done.out
    assert '~ spec.containers[0].resources.requests["tencent.com/vcuda-core"]: 0.3 -> 30' in done.out
    assert done.out.endswith("1 object, 1 allowed, 0 refused\n")


def test_one_refused_object_exits_1_with_its_place_and_fix(folder: Path) -> None:
    done = halfcard("review", "-f", str(folder / "good.yaml"), str(folder / "bad.yaml"))

    assert done.code == 1
    output = " ".join(done.out.split())
    for part in ("refused Pod default/bad", '["tencent.com/vcuda-core"]: got "1.5"', "use 100 or 200", "[HC002]"):
        assert part in output


def test_the_patch_in_json_makes_the_object_that_is_stored(folder: Path) -> None:
    (item,) = halfcard("review", "-f", str(folder / "good.yaml"), "-o", "json").json()["items"]

    assert {key: item[key] for key in ("kind", "namespace", "name", "allowed", "problems", "warnings")} == {
        "kind": "Pod",
        "namespace": "default",
        "name": "good",
        "allowed": True,
        "problems": [],
        "warnings": [],
    }
    stored = jsonpatch.apply_patch(yaml.safe_load(GOOD), item["patch"])
    resources = stored["spec"]["containers"][0]["resources"]
    assert (
        resources["limits"]
        == resources["requests"]
        == {
            "tencent.com/vcuda-core": "30",
            "tencent.com/vcuda-memory": "20",
        }
    )


def test_a_refused_item_has_problems_and_an_empty_patch(folder: Path) -> None:
    (item,) = halfcard("review", "-f", str(folder / "bad.yaml"), "-o", "json").json()["items"]

    assert (item["allowed"], item["patch"]) == (False, [])
    (problem,) = item["problems"]
    assert set(problem) == {"code", "where", "got", "rule", "fix"}
    assert (problem["code"], problem["got"]) == ("HC002", "1.5")


def test_yaml_output_says_the_same_as_json(folder: Path) -> None:
    file = str(folder / "bad.yaml")

    assert (
        yaml.safe_load(halfcard("review", "-f", file, "-o", "yaml").out)
        == halfcard("review", "-f", file, "-o", "json").json()
    )


def test_items_follow_the_documents_and_unknown_kinds_are_allowed_items() -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
    text = f"{BAD}---\n{service}---\n# nothing\n---\n{GOOD}---\n{DEPLOYMENT}"

    items = halfcard("review", "-f", "-", "-o", "json", stdin=text).json()["items"]

    assert [(item["kind"], item["allowed"]) for item in items] == [
        ("Pod", False),
        ("Service", True),
        ("Pod", True),
        ("Deployment", True),
    ]


def test_an_object_of_the_wrong_shape_affects_only_itself() -> None:
    odd = "apiVersion: v1\nkind: Pod\nmetadata: {name: odd}\nspec: {containers: {}}\n"

    items = halfcard("review", "-f", "-", "-o", "json", stdin=f"{odd}---\n{GOOD}").json()["items"]

    assert [item["allowed"] for item in items] == [False, True]
    (problem,) = items[0]["problems"]
    assert (problem["code"], problem["where"], problem["got"]) == ("HC031", "spec.containers", "object")


def test_the_state_folder_provides_the_size_of_cards(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(NODE)

    assert halfcard("review", "-f", "-", stdin=DEPLOYMENT).code == 0
    informed = halfcard("review", "-f", "-", "--state", str(tmp_path), "-o", "json", stdin=DEPLOYMENT)
    assert informed.code == 1
    assert [problem["code"] for problem in informed.json()["items"][0]["problems"]] == ["HC008"]


def test_the_user_is_a_tenant_unless_another_is_named(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("trusted_users: [agent]\n")
    forged = GOOD.replace("{name: good}", '{name: good, annotations: {tencent.com/predicate-gpu-idx-0: "1"}}')

    def review(*more: str) -> int:
        return halfcard("review", "-f", "-", "--settings", str(settings), *more, stdin=forged).code

    assert (review(), review("--as", "agent")) == (1, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("kind: Pod\n  broken: [\n", ":2:", id="no YAML"),
        pytest.param("[1, 2]\n", ":1:", id="no object"),
        pytest.param("kind: Pod\nkind: Pod\n", ":2:", id="a key twice"),
    ],
)
def test_unreadable_input_exits_2_and_names_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(text)

    done = halfcard("review", "-f", str(file))

    assert done.code == 2
    assert done.err.startswith(f"halfcard review: {file}{message}")
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("dialects: [tencnet]", "unknown dialect tencnet"),
        ("severities: {HC999: warn}", "unknown code HC999"),
        ("severitys: {}\nschedulers: 3", "severitys"),
        ("a: [", "not YAML"),
        ("- 1", "settings"),
    ],
)
def test_settings_that_cannot_be_used_exit_2_with_every_mistake(tmp_path: Path, settings: str, message: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(settings)

    done = halfcard("review", "-f", "-", "--settings", str(file), stdin=GOOD)

    assert done.code == 2
    assert str(file) in done.err
    assert message in done.err
    assert "Traceback" not in done.err


def test_lines_fit_a_hundred_columns_and_carry_no_colour_off_a_terminal(folder: Path) -> None:
    done = halfcard("review", "-f", str(folder))

    assert "\x1b" not in done.out
    assert too_wide(done.out) == []


def test_a_closed_output_pipe_is_not_an_error(tmp_path: Path) -> None:
    many = tmp_path / "many.yaml"
    many.write_text("---\n".join([GOOD] * 2000))
    command = [sys.executable, "-m", "cli", "review", "-f", str(many)]

    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()

        assert process.stderr.read() == b""
        assert process.wait(timeout=30) == 0
