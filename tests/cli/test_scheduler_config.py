"""What `halfcard scheduler-config` prints, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.__main__ import main
from deploy.chart.made import SCHEDULER
from halfcard import names


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["scheduler-config", "--kubernetes", "1.35", *arguments]) == 0
    return capsys.readouterr().out


def configuration(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return yaml.safe_load(printed(capsys, *arguments))


def test_without_settings_it_is_the_shipped_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert configuration(capsys) == yaml.safe_load(SCHEDULER.read_text())


def test_json_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "-o", "json")) == configuration(capsys)


def test_the_comments_say_where_it_belongs_and_what_to_replace(capsys: pytest.CaptureFixture[str]) -> None:
    comments = [line for line in printed(capsys).splitlines() if line.startswith("#")]
    assert "kube-scheduler 1.35" in comments[0]
    assert "Replace 10.96.34.56 by the clusterIP" in comments[-1]
    assert any("--config=/etc/kubernetes/halfcard/scheduler.yaml" in line for line in comments)


def test_resources_and_profiles_follow_the_settings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("{schedulers: [b, a], dialects: [hami], vcuda_prefixes: [{prefix: example.com}]}")
    found = configuration(capsys, "--settings", str(file))
    assert [each["schedulerName"] for each in found["profiles"]] == ["a", "b"]
    (extender,) = found["extenders"]
    managed = {each["name"]: each.get("ignoredByScheduler", False) for each in extender["managedResources"]}
    offered = {names.NVIDIA_GPU, "example.com/vcuda-core", "example.com/vcuda-memory"}
    assert managed.keys() == offered | {names.HAMI_GPUMEM, names.HAMI_GPUMEM_PERCENTAGE, names.HAMI_GPUCORES}
    assert {name for name, is_ignored in managed.items() if not is_ignored} == offered


def test_the_profile_of_the_charts_own_scheduler_is_not_for_another_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"{{schedulers: [{names.SCHEDULER}], set_scheduler_name: {names.SCHEDULER}}}")
    (profile,) = configuration(capsys, "--settings", str(file))["profiles"]
    assert profile["schedulerName"] == names.DEFAULT_SCHEDULER


@pytest.mark.parametrize(("version", "code", "message"), [("1.33", 2, "needs 1.34 or newer"), ("2.0", 0, "not tested")])
def test_versions_that_are_not_supported_are_named(
    capsys: pytest.CaptureFixture[str], version: str, code: int, message: str
) -> None:
    assert main(["scheduler-config", "--kubernetes", version]) == code
    assert message in capsys.readouterr().err


def test_what_is_no_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["scheduler-config", "--kubernetes", "new"])
    assert 'got "new"; a version of Kubernetes, such as 1.36' in capsys.readouterr().err
