"""What `halfcard review` reads, in which forms it answers, and by which exit codes."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.__main__ import main
from cli.output import terminal
from halfcard.problems import RULES

from .test_review import BAD, GOOD

BROKEN = "kind: Pod\n  broken: [\n"
TEMPLATE = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Values.name }}
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Review:
    """Runs the command in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._folder, self._capsys, self._patch = folder, capsys, patch
        patch.chdir(folder)

    def write(self, **files: str) -> None:
        """Writes files; in their names _ is a dot, and __ a slash."""
        for name, text in files.items():
            path = self._folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def __call__(self, *arguments: str, stdin: bytes | str = b"") -> Answer:
        text = stdin.encode() if isinstance(stdin, str) else stdin
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        code = main(["review", *arguments])
        return Answer(code, *self._capsys.readouterr())


@pytest.fixture
def review(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Review:
    return Review(tmp_path, capsys, monkeypatch)


# --- what is read ----------------------------------------------------------------------------------------------------


def test_an_unreadable_document_stops_no_other_and_exits_2(review: Review) -> None:
    review.write(a_yaml=f"{BROKEN}---\n{GOOD}---\n{BAD}")

    done = review("-f", ".")

    assert done.code == 2
    assert "allowed  Pod default/good  a.yaml:4" in done.out
    assert "refused  Pod default/bad  a.yaml:12" in done.out
    assert done.out.endswith("2 objects, 1 allowed, 1 refused, 1 unreadable\n")
    assert done.err.startswith("halfcard review: a.yaml:2: ")


def test_an_unreadable_file_stops_no_other(review: Review) -> None:
    review.write(good_yaml=GOOD)

    done = review("-f", "gone.yaml", "good.yaml")

    assert done.code == 2
    assert "allowed  Pod default/good" in done.out
    assert "gone.yaml:1: cannot be read: No such file or directory; check the path and its permissions" in done.err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_windows_writes_is_read(review: Review, encoding: str) -> None:
    assert review("-f", "-", stdin=GOOD.encode(encoding)).code == 0


@pytest.mark.parametrize(("stdin", "files"), [("", ["-"]), ("# nothing\n---\n", ["-"]), ("", ["."])])
def test_input_without_an_object_is_a_mistake_unless_it_is_allowed(
    review: Review, stdin: str, files: list[str]
) -> None:
    done = review("-f", *files, stdin=stdin)

    assert done.code == 2
    assert "there is no object; check what writes it, or allow it with --allow-empty" in done.err
    assert review("-f", *files, "--allow-empty", stdin=stdin).code == 0


def test_an_empty_source_beside_a_full_one_is_a_mistake_too(review: Review) -> None:
    review.write(good_yaml=GOOD)

    assert review("-f", "good.yaml", "-").code == 2


def test_a_file_of_another_program_in_a_folder_is_skipped(review: Review) -> None:
    review.write(good_yaml=GOOD, package_json='{"name": "x", "version": 1}', list_json="[1, 2]", values_yaml="a: 1\n")

    done = review("-f", ".")

    assert (done.code, done.err) == (0, "")
    assert "skipped  package.json: no Kubernetes object" in done.out
    assert [each["file"] for each in review("-f", ".", "-o", "json").json()["skipped"]] == [
        "list.json",
        "package.json",
        "values.yaml",
    ]


def test_the_same_file_named_as_a_manifest_is_a_mistake(review: Review) -> None:
    review.write(package_json='{"name": "x"}')

    done = review("-f", "package.json")

    assert (done.code, done.out) == (2, "0 objects, 0 allowed, 0 refused, 1 unreadable\n")
    assert "package.json:1: the object has no kind; add kind: and apiVersion:" in done.err


def test_an_object_that_lacks_only_its_kind_is_a_mistake_in_a_folder(review: Review) -> None:
    review.write(pod_yaml="apiVersion: v1\nmetadata: {name: x}\n")

    assert "pod.yaml:1: the object has no kind" in review("-f", ".").err


# --- what must be rendered first -------------------------------------------------------------------------------------


def test_a_chart_is_named_once_with_the_command_that_renders_it(review: Review) -> None:
    review.write(
        good_yaml=GOOD,
        web__Chart_yaml="apiVersion: v2\nname: web\nversion: 1.0.0\n",
        web__values_yaml="name: web\n",
        web__templates__a_yaml=TEMPLATE,
        web__templates__b_yaml='kind: Pod\nmetadata: {name: "{{ .Values.name }}"}\n',
        web__crds__quota_yaml="apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n",
    )

    for files in (["."], ["good.yaml", "web/crds", "web/templates/a.yaml", "web/templates/b.yaml"]):
        done = review("-f", *files)

        assert done.code == 2
        assert "2 objects, 2 allowed, 0 refused, 1 unreadable" in done.out
        assert done.err == (
            "halfcard review: web/Chart.yaml:1: the files of a Helm chart are templates; "
            "render it: helm template web | halfcard review -f -\n"
        )


@pytest.mark.parametrize(
    "text",
    [
        TEMPLATE,
        "{{- if .Values.gpu }}\n" + GOOD + "{{- end }}\n",
        'kind: Pod\nmetadata:\n  {{- include "labels" . | nindent 4 }}\n',
        "kind: Pod\nspec:\n{{ toYaml .Values.spec }}\n",
    ],
)
def test_a_template_alone_is_named_once_with_the_line_of_its_first_action(review: Review, text: str) -> None:
    review.write(a_yaml=text)
    line = 1 + text[: text.index("{{")].count("\n")

    done = review("-f", "a.yaml")

    assert done.code == 2
    expected = "a Helm template is no manifest; render it: helm template CHART | halfcard review -f -"
    assert done.err == f"halfcard review: a.yaml:{line}: {expected}\n"


@pytest.mark.parametrize("action", ["{{ $labels.pod }} is full", "{{inputs.parameters.name}}", "{{ .Values.x }}"])
def test_a_readable_manifest_with_braces_is_reviewed(review: Review, action: str) -> None:
    text = GOOD.replace("{name: good}", f'{{name: good, annotations: {{a: "{action}"}}}}')
    assert review("-f", "-", stdin=text).code == 0


def test_a_broken_workflow_of_argo_is_no_template(review: Review) -> None:
    done = review("-f", "-", stdin=f'kind: Workflow\nspec: {{a: "{{{{inputs.parameters.x}}}}"\n---\n{GOOD}')

    assert "close the bracket" in done.err
    assert "allowed  Pod default/good" in done.out


@pytest.mark.parametrize("kind", ["apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", ""])
def test_a_kustomization_is_not_judged_and_named_with_the_command_that_renders_it(review: Review, kind: str) -> None:
    review.write(base__kustomization_yaml=f"{kind}resources: [pod.yaml]\n", base__pod_yaml=GOOD)

    done = review("-f", "base")

    assert done.code == 0
    assert "not judged  Kustomization  base/kustomization.yaml:1\n" in done.out
    assert "render it: kubectl kustomize base | halfcard review -f -" in done.out
    assert done.out.endswith("2 objects, 1 allowed, 0 refused, 1 not judged\n")
    assert review("-f", "base", "--strict").code == 4


# --- forms -----------------------------------------------------------------------------------------------------------


def test_quiet_shows_only_what_is_not_allowed(review: Review) -> None:
    review.write(a_yaml=f"{GOOD}---\n{BAD}", package_json="{}")

    done = review("-f", ".", "-q")

    assert done.code == 1
    assert done.out.startswith("refused  Pod default/bad  a.yaml:9\n")
    assert "good" not in done.out and "skipped" not in done.out and "objects" not in done.out
    assert [each["name"] for each in review("-f", ".", "-q", "-o", "json").json()["items"]] == ["bad"]
    assert review("-f", "-", "-q", stdin=GOOD) == Answer(0, "", "")


def test_json_has_file_and_line_of_items_and_of_errors(review: Review) -> None:
    review.write(a_yaml=f"{GOOD}---\n{BROKEN}---\n{BAD}")

    found = review("-f", "a.yaml", "-o", "json").json()

    assert [(item["file"], item["line"], item["allowed"]) for item in found["items"]] == [
        ("a.yaml", 1, True),
        ("a.yaml", 12, False),
    ]
    (error,) = found["errors"]
    assert set(error) == {"file", "line", "what", "fix"}
    assert (error["file"], error["line"]) == ("a.yaml", 10)


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["--settings", "settings.yaml"], "settings.yaml"),
        (["--state", "nowhere"], "nowhere"),
        (["-f", "nowhere"], "nowhere"),
    ],
)
def test_every_mistake_in_the_input_is_in_the_document(
    review: Review, form: str, arguments: list[str], file: str
) -> None:
    review.write(settings_yaml="dialects: [tencnet]\nseverities: {HC999: warn}\n")

    done = review("-f", "-", *arguments, "-o", form, stdin=GOOD)

    assert (done.code, done.err) == (2, "")
    assert {error["file"] for error in yaml.safe_load(done.out)["errors"]} == {file}


def test_progress_is_shown_while_a_review_is_slow(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_EVERY_S", 0.01)

    done = review("-f", "-", "-q", stdin="---\n".join([GOOD] * 500))

    assert done.out == ""
    assert "halfcard review: reading" in done.err or "of 500 objects judged" in done.err


# --- SARIF -----------------------------------------------------------------------------------------------------------

WARNED = GOOD.replace("0.3", "3")
"""A number that is often meant as so many cards."""


@pytest.fixture
def log(review: Review) -> Any:
    review.write(a_yaml=f"{GOOD}---\n{BAD}---\n{WARNED}", b_c_yaml=BROKEN, kustomization_yaml="resources: []\n")
    return review("-f", ".", "-o", "sarif").json()


def test_sarif_has_what_its_schema_requires(log: Any) -> None:
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"] == "halfcard"
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 2}]
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert known >= set(RULES)
    for result in run["results"]:
        assert result["ruleId"] in known
        assert result["level"] in {"error", "warning", "note"}
        assert result["message"]["text"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["region"]["startLine"] >= 1
        assert not location["physicalLocation"]["artifactLocation"]["uri"].startswith("/")


def test_sarif_names_the_line_of_the_field(log: Any) -> None:
    results = log["runs"][0]["results"]
    found = {(each["ruleId"], each["level"], *_place(each)) for each in results}

    assert found == {
        ("HC002", "error", "a.yaml", 15),
        ("HC044", "warning", "a.yaml", 23),
        ("not-judged", "note", "kustomization.yaml", 1),
        ("unreadable", "error", "b.c.yaml", 2),
    }


def _place(result: Any) -> tuple[str, int]:
    place = result["locations"][0]["physicalLocation"]
    return place["artifactLocation"]["uri"], place["region"]["startLine"]


def test_sarif_spells_odd_and_absolute_paths_as_uris(review: Review, tmp_path: Path) -> None:
    (tmp_path / "a b#.yaml").write_text(BAD)

    def uris(file: str) -> list[str]:
        return [_place(each)[0] for each in review("-f", file, "-o", "sarif").json()["runs"][0]["results"]]

    assert uris("a b#.yaml") == ["a%20b%23.yaml"]
    assert uris(str(tmp_path / "a b#.yaml")) == [(tmp_path / "a b#.yaml").as_uri()]
