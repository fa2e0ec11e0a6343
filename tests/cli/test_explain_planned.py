"""`halfcard explain -f`: pods that do not exist yet, with a dump as cluster."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from cli.__main__ import main
from tests.builders import PodBuilder, pod

from .command import ROOT

CLUSTER: Final = ROOT / "deploy" / "examples" / "tuya-half-cards" / "cluster.yaml"


class Explain:
    def __init__(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = file
        self._capsys = capsys

    def __call__(self, *objects: Mapping[str, Any]) -> tuple[int, list[dict[str, Any]]]:
        self.file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        code, out, err = self.run("-f", str(self.file), "-o", "json")
        assert err == ""
        return code, json.loads(out)["planned"]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = main(["explain", *arguments, "--state", str(CLUSTER)])
        said = self._capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    return Explain(tmp_path / "planned.json", capsys)


def deployment(of: PodBuilder, replicas: int) -> dict[str, Any]:
    template = {"metadata": {}, "spec": of.manifest["spec"]}
    spec = {"replicas": replicas, "selector": {}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


FITS: Final = pod("fits").asks(core="0.3", memory="5Gi")


def test_a_pod_is_repaired_and_fits(explain: Explain) -> None:
    code, (found,) = explain(FITS.manifest)
    assert code == 0 and found["pod"] == "default/fits" and found["refusal"] == "" and found["waits"] == []
    assert [*found["explanation"]["asks"].values()] == ["30 % and 5120 MiB of a card"]
    assert [each["name"] for each in found["explanation"]["prospects"]["nodes"] if not each["reason"]] == ["a10-1"]


def test_a_workload_answers_once_by_its_own_name(explain: Explain) -> None:
    code, (found,) = explain(deployment(FITS, replicas=3))
    assert (code, found["pod"], found["explanation"]["pod"]) == (0, "default/web", "default/web")


def test_a_refused_pod_and_one_that_fits_nowhere_are_held_back(explain: Explain) -> None:
    code, (refused,) = explain(pod("odd").asks(core=150, memory=5).manifest)
    assert code == 1 and "[HC002]" in refused["refusal"] and refused["explanation"] is None
    code, (nowhere,) = explain(pod("large").asks(core=400).manifest)
    assert code == 1 and nowhere["refusal"] == ""
    assert all(each["reason"] for each in nowhere["explanation"]["prospects"]["nodes"])


def test_the_text_says_would(explain: Explain) -> None:
    explain(FITS.manifest)
    _, out, _ = explain.run("-f", str(explain.file))
    assert out.startswith("Pod default/fits would be stored (priority 0). It would request:\n")
    explain(pod("plain").container().manifest)
    _, out, _ = explain.run("-f", str(explain.file))
    assert out.startswith("Pod default/plain would be stored and request no card")


def test_standard_input_is_read(explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(FITS.manifest).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert explain.run("-f", "-")[0] == 0


def test_what_cannot_be_answered_says_why(explain: Explain) -> None:
    explain.file.write_text(json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}))
    file = str(explain.file)
    for arguments, words in (
        (("-f", file), "no object creates pods: got Service"),
        (("-f", "/nowhere.yaml"), "cannot be read"),
        (("train", "-f", file), "got -f with a pod"),
    ):
        code, out, err = explain.run(*arguments)
        assert (code, out) == (2, "") and words in err
