"""The packing table end to end, on a trace small enough for a second. What it measures is not judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import packing
from bench.figures import WIDTH
from bench.packing import OURS, THEIRS, Done, Filled, Job, Plan, churn_part, fill_part, filled
from tests.simulation.trace import node_table, pod_table


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(node_table(16))
    for seed, name in enumerate(packing.PUBLISHED):
        (tmp_path / f"openb_pod_list_{name}.csv").write_text(pod_table(120, seed))
    return tmp_path


def test_it_prints_tables_and_writes_them_as_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = data / "packing.json"
    assert packing.main(["--quick", "--data", str(data), "--json", str(file), "--processes", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= WIDTH
    assert {line.split("  ")[0] for line in lines} >= {*packing.PUBLISHED, *packing.QUICK.variants}
    fill, churn = json.loads(file.read_text())["parts"]
    assert "default: left by default, against FGD's" in {figure["name"] for figure in fill["figures"]}
    assert "default at 95 %: rejected by FGD" in {figure["name"] for figure in churn["figures"]}


def test_without_the_trace_it_says_how_to_pass_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert packing.main(["--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "cannot be read" in said and "--data or $HALFCARD_OPENB" in said


def test_the_full_plan_has_every_workload_for_both_policies() -> None:
    jobs = list(Plan().jobs())
    assert len(jobs) == len(set(jobs))
    for name in packing.PUBLISHED:
        for policy in (OURS, THEIRS):
            seeds = {job.seed for job in jobs if (job.workload, job.policy, job.load) == (name, policy, None)}
            assert seeds == set(range(42, 52))


def test_the_mean_over_all_seeds_is_compared() -> None:
    measured = {
        Job("default", THEIRS, 42): Done(allocated=94.0),
        Job("default", THEIRS, 43): Done(allocated=96.0),
        Job("default", OURS, 42): Done(allocated=96.0),
        Job("default", OURS, 43): Done(allocated=97.0),
        Job("default", OURS, 42, 0.95): Done(rejected=3.0),
    }
    (row,) = filled(measured, 1000)
    assert (row.theirs, row.ours) == (95.0, 96.5)
    assert row.left == pytest.approx(0.7)


TARGETS = {
    "a fifth less is left": (95.0, 96.1, "met"),
    "a tenth less is not enough on average": (95.0, 95.6, "MISSED"),
    "more is left": (95.0, 94.0, "MISSED"),
}


@pytest.mark.parametrize(("theirs", "ours", "verdict"), TARGETS.values(), ids=TARGETS.keys())
def test_a_target_is_met_by_a_fifth_fewer_idle_cards(theirs: float, ours: float, verdict: str) -> None:
    part = fill_part([Filled("cpu x2", theirs, ours, 1000)], Plan())
    assert part.figures[0].verdict == verdict


def test_fgd_is_compared_with_its_published_figures() -> None:
    part = fill_part([Filled("default", 95.2, 97.0, 1000)], Plan())
    assert [figure.verdict for figure in part.figures if "published" in figure.name] == ["MISSED"]


@pytest.mark.parametrize(("ours", "verdict"), [(2.0, "met"), (2.1, "MISSED")])
def test_more_refused_pods_than_the_peer_miss_the_target(ours: float, verdict: str) -> None:
    measured = {
        Job("default", OURS, 42, 0.95): Done(rejected=ours),
        Job("default", THEIRS, 42, 0.95): Done(rejected=2.0),
    }
    assert churn_part(measured).figures[-1].verdict == verdict
