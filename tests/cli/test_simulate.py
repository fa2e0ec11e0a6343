"""`halfcard simulate`: tables of a trace, manifests and dumps in, a table or JSON out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.__main__ import main
from cli.output.terminal import Screen
from cli.simulate import ReplayProgress
from extender.packing.placement import POLICIES
from halfcard import names
from tests.builders import pod
from tests.simulation.trace import NODE_HEADS, POD_HEADS, node_table, pod_table

from .command import ROOT, too_wide

MIXED = str(ROOT / "deploy" / "examples" / "tuya-half-cards" / "cluster.yaml")
KEYS = {
    *("policy", "seed", "tune", "nodes", "gpus", "pods", "demand_gpus", "allocated_gpus", "allocated_percent"),
    *("fragmented_gpus", "fragmented_percent", "pending_pods", "pending_gpus", "pending_by_size"),
}


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    """The arguments that name a small one."""
    return named(tmp_path, node_table(), pod_table())


def named(folder: Path, nodes: str, pods: str) -> list[str]:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "pods.csv").write_text(pods)
    return ["simulate", "--nodes", str(folder / "nodes.csv"), "--pods", str(folder / "pods.csv")]


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_has_these_keys_and_the_defaults_of_the_published_method(
    trace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = simulated(capsys, *trace)
    assert set(found) == KEYS
    assert (found["policy"], found["seed"], found["tune"], found["nodes"], found["gpus"]) == (
        "default",
        42,
        1.3,
        12,
        42,
    )
    assert found["demand_gpus"] <= 1.3 * 42


def test_the_options_decide_what_is_replayed(trace: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, *trace, "--policy", "fgd", "--seed", "7", "--tune", "0")
    assert (found["policy"], found["seed"], found["tune"], found["pods"]) == ("fgd", 7, 0, 60)


def test_policies_are_compared_on_the_same_pods(trace: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, *trace, "--compare")
    assert [each["policy"] for each in found] == list(POLICIES)
    assert len({(each["pods"], each["demand_gpus"]) for each in found}) == 1


def test_the_table_has_a_line_for_each_policy_and_fits_a_hundred_columns(
    trace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*trace, "--compare"]) == 0
    said = capsys.readouterr()
    assert too_wide(said.out) == [] and said.err == "" and "\x1b" not in said.out
    lines = said.out.splitlines()
    assert lines[0] == "12 nodes, 42 GPUs"
    assert [line.split()[0] for line in lines[4:8]] == list(POLICIES)


class Terminal:
    def __init__(self) -> None:
        self.written = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.written += text

    def flush(self) -> None:
        pass


def test_progress_is_one_terminal_line_that_is_removed_at_the_end() -> None:
    terminal = Terminal()
    progress = ReplayProgress(Screen(terminal, coloured=False), "fgd")  # type: ignore[arg-type]
    for done in range(401):
        progress(done, 400)
    assert "fgd: 200 of 400 pods" in terminal.written and "\n" not in terminal.written
    assert terminal.written.endswith("\r\x1b[K")


# --- manifests and dumps


def test_manifests_are_replayed_on_empty_nodes_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, "simulate", "--nodes", MIXED, "--pods", MIXED, "--tune", "0")
    assert (found["nodes"], found["gpus"], found["pods"]) == (1, 4, 4)
    assert found["pending_pods"] > 0


def _workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": _pod(name, "30")["spec"]}
    return {"kind": kind, "metadata": {"name": name}, "spec": {**spec, "template": template}}


NODE = {
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"capacity": {"tencent.com/vcuda-core": "800", "tencent.com/vcuda-memory": "512"}},
}


@pytest.mark.parametrize(
    ("others", "pods"),
    [
        ([{"kind": "ConfigMap", "metadata": {"name": "c"}}], 3 + 1 + 2),
        ([{"kind": "Pod", "metadata": {"name": "web-1", "ownerReferences": [{"name": "web"}]}, "spec": {}}], 1),
    ],
    ids=["without their pods", "their pods are in the dump"],
)
def test_workloads_are_replayed_as_their_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: list[dict[str, Any]], pods: int
) -> None:
    workloads = [
        _workload("Deployment", "web", replicas=3),
        _workload("StatefulSet", "db"),
        _workload("Job", "j", parallelism=2),
    ]
    owned = _workload("ReplicaSet", "web-5", replicas=3)
    owned["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "web"}]
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "items": [NODE, *workloads, owned, *others]}))
    place = str(tmp_path / "all.json")
    assert simulated(capsys, "simulate", "--nodes", place, "--pods", place, "--tune", "0")["pods"] == pods


@pytest.mark.parametrize(
    ("spec", "why"),
    [({"replicas": -1}, "-1 pods; use 0 to 100000"), ({"replicas": "3"}, "Expected `int | null`, got `str`")],
)
def test_an_unreadable_workload_is_skipped_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: dict[str, Any], why: str
) -> None:
    odd = _workload("Deployment", "odd", **spec)
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "items": [NODE, odd, _pod("runs", "30")]}))
    place = str(tmp_path / "all.json")
    assert main(["simulate", "--nodes", place, "--pods", place, "--tune", "0", "-o", "json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["pods"] == 1
    warned = " ".join(said.err.split())
    assert "the Deployment is left out" in warned and why in warned


def test_pods_that_have_ended_or_request_impossible_amounts_are_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity = {"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "128"}
    bare = {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": capacity}}
    odd = {"kind": "Node", "metadata": {"name": "odd"}, "status": {"capacity": {"tencent.com/vcuda-core": "50"}}}
    pods = [_pod("runs", "30"), _pod("is-over", "30", phase="Succeeded"), _pod("never", "150")]
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "items": [bare, odd, *pods]}))
    place = str(tmp_path / "dump.json")

    assert main(["simulate", "--nodes", place, "--pods", place, "--tune", "0", "-o", "json"]) == 0

    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["pods"], found["allocated_gpus"], found["nodes"]) == (1, 0.3, 1)
    warned = " ".join(said.err.split())
    assert "Warning: node odd is left out" in warned and "Warning: pod default/never is left out" in warned


def _pod(name: str, cores: str, phase: str = "Pending") -> dict[str, Any]:
    limits = {names.VCUDA_CORE: cores, names.VCUDA_MEMORY: "8", "cpu": "4"}
    return pod(name).container(limits=limits, requests=limits).in_phase(phase).manifest


# --- what cannot be replayed

UNUSABLE = {
    "no GPU": (f"{NODE_HEADS}\nn,1,1,0,\n", pod_table(), "nodes.csv: it has no node with a GPU"),
    "no pod requests a GPU": (node_table(), f"{POD_HEADS}\np,1,1,0,0,,\n", "use --tune 0"),
    "an empty file": (node_table(), "", "pods.csv:1: no column name"),
    "a negative number": (f"{NODE_HEADS}\nn,-1,1,1,T4\n", pod_table(), 'nodes.csv:2: cpu_milli: got "-1"'),
    "a huge number": (f"{NODE_HEADS}\nn,1,1,{10**30},T4\n", pod_table(), "nodes.csv:2: gpu: got "),
    "a missing column": ("sn,gpu\nn,1\n", pod_table(), "nodes.csv:1: no column cpu_milli, memory_mib, model;"),
}


@pytest.mark.parametrize(("nodes", "pods", "why"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_tables_that_cannot_be_replayed_exit_2_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nodes: str, pods: str, why: str
) -> None:
    assert main(named(tmp_path, nodes, pods)) == 2
    said = capsys.readouterr().err
    assert said.startswith("halfcard simulate: ") and why in said


def test_pods_that_use_no_card_can_be_replayed_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = named(tmp_path, node_table(), f"{POD_HEADS}\np,1,1,0,0,,\n")
    assert simulated(capsys, *arguments, "--tune", "0")["pending_pods"] == 0


MISSING = {
    "a table": ("/nowhere.csv", MIXED, "/nowhere.csv: cannot be read: No such file"),
    "manifests": (MIXED, "/nowhere", "/nowhere:1: cannot be read"),
    "settings": (MIXED, MIXED, "/nowhere: cannot be read"),
}


@pytest.mark.parametrize(("nodes", "pods", "why"), MISSING.values(), ids=MISSING.keys())
def test_missing_files_exit_2(nodes: str, pods: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--settings", "/nowhere"] if "settings" in why or nodes == pods else []
    assert main(["simulate", "--nodes", nodes, "--pods", pods, *settings]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("what", ["Node", "Pod"])
def test_a_dump_without_nodes_or_pods_says_how_to_save_them(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    nodes, pods = (str(empty), MIXED) if what == "Node" else (MIXED, str(empty))
    assert main(["simulate", "--nodes", nodes, "--pods", pods]) == 2
    assert f"it has no {what}" in capsys.readouterr().err


def test_bytes_that_are_not_text_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = named(tmp_path, node_table(), "")
    (tmp_path / "pods.csv").write_bytes(b"name,\xff\n")
    assert main(arguments) == 2
    assert "pods.csv: not UTF-8 at byte 5" in capsys.readouterr().err


WRONG = {
    "an unknown policy": (["--policy", "best"], "invalid choice: 'best'"),
    "a negative tune": (["--tune=-1"], 'got "-1"; use a number from 0 to 10'),
    "a huge tune": (["--tune", "1e300"], 'got "1e300"; use a number from 0 to 10'),
    "a tune that is no number": (["--tune", "nan"], 'got "nan"; use a number from 0 to 10'),
    "a seed that is no number": (["--seed", "one"], "invalid int value: 'one'"),
    "one policy and all of them": (["--policy", "fgd", "--compare"], "not allowed with argument"),
}


@pytest.mark.parametrize(("arguments", "why"), WRONG.values(), ids=WRONG.keys())
def test_invalid_arguments_exit_2(
    trace: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([*trace, *arguments])
    assert exit_.value.code == 2
    assert why in capsys.readouterr().err
