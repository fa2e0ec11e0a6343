"""The scheduler configurations that we ship: complete, and in the version that schedulers read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deploy.chart import scheduler_template
from deploy.chart.made import SCHEDULER
from halfcard import names
from halfcard.dialects import ALL, Dialects
from halfcard.dialects.hami import HAMI_WORDS

_FOLDER: Final = Path(__file__).parents[2] / "deploy" / "scheduler"
_FILES: Final = sorted(_FOLDER.glob("*.yaml"))


def extender(file: Path) -> dict[str, Any]:
    content = yaml.safe_load(file.read_text())
    assert content["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    (found,) = content["extenders"]
    return dict(found)


def managed(file: Path) -> dict[str, bool]:
    return {each["name"]: each.get("ignoredByScheduler", False) for each in extender(file)["managedResources"]}


def test_the_recommended_one_sends_every_pod_that_requests_gpus_in_any_dialect() -> None:
    found = managed(_FOLDER / "halfcard.yaml")
    assert found.keys() == Dialects(ALL).resources
    assert {name for name, ignored in found.items() if ignored} == HAMI_WORDS


def test_the_recommended_one_is_what_the_code_makes() -> None:
    assert SCHEDULER.read_text() == scheduler_template.file(), "run `make chart`"


@pytest.mark.parametrize("file", _FILES, ids=lambda file: str(file.name))
def test_only_gpu_resources_are_sent_and_a_failed_bind_is_never_skipped(file: Path) -> None:
    assert managed(file).keys() <= Dialects(ALL).resources
    assert extender(file)["ignorable"] is False


@pytest.mark.parametrize("file", _FILES, ids=lambda file: str(file.name))
def test_the_extender_gets_all_nodes_of_a_large_cluster(file: Path) -> None:
    (profile,) = yaml.safe_load(file.read_text())["profiles"]
    assert profile["percentageOfNodesToScore"] == 100


def test_the_extenders_scores_outweigh_the_schedulers_own() -> None:
    assert extender(_FOLDER / "halfcard.yaml")["weight"] == 100


def test_the_recommended_one_calls_the_paths_that_are_served() -> None:
    found = extender(_FOLDER / "halfcard.yaml")
    verbs = {names.FILTER_PATH, names.PRIORITIZE_PATH, names.BIND_PATH, names.PREEMPT_PATH}
    root = found["urlPrefix"].removeprefix("https://10.96.34.56:443")
    assert {f"{root}/{found[verb]}" for verb in ("filterVerb", "prioritizeVerb", "bindVerb", "preemptVerb")} == verbs
    assert found["tlsConfig"]["serverName"] == f"{names.EXTENDER_SERVICE}.{names.NAMESPACE}.svc"
