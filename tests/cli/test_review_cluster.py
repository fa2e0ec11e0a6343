"""`halfcard review --cluster` lists what is stored and would be refused, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from admission.policy import AdmissionPolicy
from cli.__main__ import main
from cli.inputs.stored_workloads import COLLECTIONS, judged_again
from cli.judge import Judge
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.pod.holders import BUILT_IN
from tests.builders import PodBuilder, pod

from .api_stand_in import api_server

MOUNTING: Final = pod("agent").container().specified(volumes=[{"name": "v", "hostPath": {"path": "/proc"}}])
SHARE: Final = pod("share").asks(core="30", memory="20")


def owned(kind: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "x/v1", "kind": kind, "name": "o", "uid": "u", "controller": True}]}


def stored(built: PodBuilder, namespace: str = "team", **metadata: Any) -> dict[str, Any]:
    return built.described(namespace=namespace, **metadata).manifest


def template(built: PodBuilder, name: str, namespace: str = "monitoring") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"metadata": metadata, "spec": {"template": {"spec": built.manifest["spec"]}}}


def refused(kind: str, obj: Mapping[str, Any], policy: AdmissionPolicy = AdmissionPolicy()) -> list[str]:  # noqa: B008  (frozen)
    judge = Judge(policy, NOTHING_KNOWN)
    return [problem.code for item in judged_again(judge, kind, [obj]) for problem in item.verdict.problems]


def test_every_kind_that_is_judged_is_read() -> None:
    claims = {"resource.k8s.io/ResourceClaim", "resource.k8s.io/ResourceClaimTemplate"}
    assert set(COLLECTIONS) == {*BUILT_IN, *claims, "Pod"}
    assert COLLECTIONS["apps/DaemonSet"] == "/apis/apps/v1/daemonsets"
    assert COLLECTIONS["Pod"] == "/api/v1/pods"


@pytest.mark.parametrize(
    ("obj", "codes"),
    [
        (stored(MOUNTING), ["HC024"]),
        (stored(MOUNTING, **owned("SparkApplication")), ["HC024"]),
        (stored(MOUNTING, **owned("DaemonSet")), []),
        (stored(MOUNTING, names.KUBE_SYSTEM), []),
        (stored(MOUNTING, annotations={names.MIRROR_POD: "x"}), []),
        (stored(MOUNTING.in_phase("Succeeded")), []),
        (stored(MOUNTING.in_phase("Running")), ["HC024"]),
        (stored(SHARE.on("gpu1", ["GPU-0"]).in_phase("Running")), []),
        (stored(pod().container()), []),
    ],
)
def test_a_stored_pod_is_judged_as_if_it_were_new(obj: dict[str, Any], codes: list[str]) -> None:
    assert refused("Pod", obj) == codes


def test_a_workload_is_judged_once_at_its_top() -> None:
    assert refused("apps/DaemonSet", template(MOUNTING, "d")) == ["HC024"]
    controlled = template(MOUNTING, "r")
    controlled["metadata"] |= owned("Deployment")
    assert refused("apps/ReplicaSet", controlled) == []


def test_a_system_workload_is_not_listed() -> None:
    policy = AdmissionPolicy(system_workloads=frozenset({"monitoring"}))
    assert refused("apps/DaemonSet", template(MOUNTING, "d"), policy) == []


CLUSTER: Final[dict[str, Any]] = {
    **{path: [] for path in COLLECTIONS.values() if "resource.k8s.io" not in path},
    COLLECTIONS["apps/DaemonSet"]: [template(MOUNTING, "node-exporter"), template(pod().container(), "harmless")],
    COLLECTIONS["Pod"]: [stored(MOUNTING, **owned("DaemonSet")), stored(SHARE.on("gpu1", ["GPU-0"]))],
}


def review(folder: Path, *arguments: str) -> int:
    with api_server(folder, CLUSTER, lambda _: (500, "")) as kubeconfig:
        return main(["review", "--cluster", "--kubeconfig", str(kubeconfig), *arguments])


def test_the_command_lists_what_would_be_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert review(tmp_path) == 1
    printed = capsys.readouterr().out
    assert "refused  DaemonSet monitoring/node-exporter  cluster:1\n" in printed
    assert "HC024" in printed
    assert printed.endswith("1 object, 0 allowed, 1 refused\n")


def test_a_dry_run_lists_what_would_be_refused_as_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("severities: {HC024: warn}")
    assert review(tmp_path, "--settings", str(settings), "-o", "json") == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["name"], item["allowed"]) == ("node-exporter", True)
    assert "HC024" in item["warnings"][0]


def test_named_system_workloads_leave_nothing_to_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("system_workloads: [monitoring]")
    assert review(tmp_path, "--settings", str(settings)) == 0
    assert capsys.readouterr().out == "0 objects, 0 allowed, 0 refused\n"


def test_files_and_cluster_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["review", "--cluster", "-f", str(tmp_path)])
    assert ended.value.code == 2
    assert "not allowed with" in capsys.readouterr().err
