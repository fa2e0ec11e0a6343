"""`halfcard quota explain`: who waits in a quota, at which place, behind whom, and for what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from cli.__main__ import main
from halfcard import names
from halfcard.quota.ledger import Ledger
from kube.ledger.ledger_store import ConfigMapMetadata, to_config_map
from quota.reporting.queue_rows import QueueRow
from quota.reporting.status import status_of
from tests.cli.api_stand_in import api_server

ROWS: Final = [
    QueueRow("team/a", lacks="cores=30"),
    QueueRow("other/b", behind="team/a"),
    QueueRow("team/c", lacks="memory=1Gi", behind="other/b"),
    QueueRow("team/huge", why="more than the whole quota"),
]
PLACES: Final = [
    "1. team/a: lacks cores=30",
    "2. other/b: is behind team/a",
    "3. team/c: is behind other/b, and lacks memory=1Gi",
    "4. team/huge: more than the whole quota",
]


def explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], quota: dict[str, Any], *arguments: str) -> str:
    spec, ledger = quota["spec"], Ledger({"cores": 100}, is_ready=True)
    status = status_of(ledger, waiting=len(ROWS), queue=ROWS)
    there: dict[str, Any] = {
        "/api/v1/namespaces/team": {"metadata": {"name": "team", "labels": {}}},
        "/api/v1/namespaces/team/resourcequotas": [],
        "/api/v1/namespaces/team/pods": [],
        f"{names.QUOTA_API}/namespaces/team/{names.GPU_QUOTAS}": [],
        f"{names.QUOTA_API}/{names.CLUSTER_GPU_QUOTAS}": [
            {"metadata": {"name": "gpu", "uid": "u"}, "spec": spec, "status": status}
        ],
    }
    if spec.get("asDefault"):
        name = "defaultgpuquota.team.gpu"
        stored = to_config_map(ConfigMapMetadata(name, "1"), ledger)
        there[f"/api/v1/namespaces/{names.NAMESPACE}/configmaps/{name}"] = {
            "metadata": {"name": name, "resourceVersion": "1"},
            "data": stored.data,
        }
    with api_server(tmp_path, there, lambda _: (500, "")) as kubeconfig:
        assert main(["quota", "explain", "team", "--kubeconfig", str(kubeconfig), *arguments]) == 0
    return capsys.readouterr().out


SHARED: Final = {"spec": {"hard": {"cores": 100}, "onExceeded": "Gate", "namespaces": {"names": ["team", "other"]}}}
DEFAULT: Final = {
    "spec": {"hard": {"cores": 100}, "onExceeded": "Gate", "asDefault": True, "namespaces": {"selector": {}}}
}


def test_each_waiting_pod_has_its_place_and_what_it_waits_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line.strip() for line in explained(tmp_path, capsys, SHARED).splitlines()]
    assert [line for line in lines if line[:1].isdigit() and ". " in line] == PLACES


def test_programs_get_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (quota,) = json.loads(explained(tmp_path, capsys, SHARED, "-o", "json"))["quotas"]
    assert quota["queue"] == [row.as_status() for row in ROWS]


def test_of_a_default_only_the_pods_of_the_namespace_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (quota,) = json.loads(explained(tmp_path, capsys, DEFAULT, "-o", "json"))["quotas"]
    assert [row["pod"] for row in quota["queue"]] == ["team/a", "team/c", "team/huge"]
