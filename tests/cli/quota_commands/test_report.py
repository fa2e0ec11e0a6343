"""Who uses how much, from the pods alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.__main__ import main as halfcard
from tests.builders import PodBuilder, pod
from tests.cli.list_server import kubeconfig_of


def stored(built: PodBuilder, namespace: str, *, phase: str = "Running", on: str = "n1", **labels: str) -> Any:
    return built.created(namespace).labelled(labels).on(on).in_phase(phase).manifest


SHARE, CARD = {"core": 30, "memory": 4}, {"core": 100}
PODS = [
    stored(pod("a").asks(**CARD), "team", user="ann"),
    stored(pod("b").asks(**SHARE), "team", user="bob", on="", phase="Pending"),
    stored(pod("c").asks(**SHARE), "lab", user="bob"),
    stored(pod("d").asks(**SHARE), "lab", phase="Succeeded"),
    stored(pod("e").container(), "web"),
]


def report(folder: Path, *arguments: str) -> int:
    of_lab = [each for each in PODS if each["metadata"]["namespace"] == "lab"]
    with kubeconfig_of(folder, {"/api/v1/pods": PODS, "/api/v1/namespaces/lab/pods": of_lab}) as kubeconfig:
        return halfcard(["quota", "report", "--kubeconfig", str(kubeconfig), *arguments])


def test_namespaces_are_sorted_by_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(tmp_path) == 0
    assert capsys.readouterr().out == (
        "NAMESPACE  PODS  WAITING  CORES  MEMORY  CARDS  SHARES\n"
        "team          2        1    130     1Gi      1       1\n"
        "lab           1        0     30     1Gi      0       1\n"
    )


def test_teams_may_be_the_values_of_a_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(tmp_path, "--by", "user", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["team"], each["pods"], each["cores"]) for each in found] == [("ann", 1, 100), ("bob", 2, 60)]


def test_a_namespace_is_read_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(tmp_path, "-n", "lab", "--by", "user", "-o", "json") == 0
    assert [each["team"] for each in json.loads(capsys.readouterr().out)] == ["bob"]


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kubeconfig_of(tmp_path, {}) as kubeconfig:
        assert halfcard(["quota", "report", "--kubeconfig", str(kubeconfig)]) == 2
    assert "forbidden" in capsys.readouterr().err
