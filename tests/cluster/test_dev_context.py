"""`halfcard dev up --context`: Halfcard for an existing cluster, which it never blocks and leaves as it was."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.control_plane.client import ApiResponse, CommandResult
from devcluster.dev.state import DevFolder
from devcluster.objects import Object
from devcluster.waiting import wait_until
from halfcard import names
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from tests.builders import pod

from .manifests import bad, complete, resources, share, workload
from .test_dev import Development, halfcard_dev, status
from .test_harness import processes_with

CONTEXT = "cluster"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WRITTEN_COLLECTIONS = (
    f"{HOOKS}/mutatingwebhookconfigurations",
    f"{HOOKS}/validatingwebhookconfigurations",
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
)


@pytest.fixture(scope="module")
def foreign_cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def items(cluster: Cluster, path: str) -> list[Any]:
    found: list[Any] = cluster.request("GET", path).must()["items"]
    return found


def existing_objects(cluster: Cluster) -> list[str]:
    return sorted(
        f"{path} {item['metadata'].get('namespace', '')} {item['metadata']['name']}"
        for path in WRITTEN_COLLECTIONS
        for item in items(cluster, path)
    )


def dev_in(cluster: Cluster, *arguments: str) -> CommandResult:
    return halfcard_dev(*arguments, environment={"KUBECONFIG": str(cluster.admin.kubeconfig)})


def create(cluster: Cluster, item: Object) -> ApiResponse:
    return cluster.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", item)


@pytest.fixture
def objects_before(foreign_cluster: Cluster) -> list[str]:
    return existing_objects(foreign_cluster)


@pytest.fixture
def evaluation(foreign_cluster: Cluster, objects_before: list[str], tmp_path: Path) -> Iterator[Development]:
    assert not [line for line in objects_before if names.NAMESPACE in line]
    folder = tmp_path / "dev"
    done = dev_in(foreign_cluster, "up", "--context", CONTEXT, "--dir", str(folder))
    assert done.code == EXIT_OK, done
    try:
        yield Development(folder, done.stdout)
    finally:
        assert halfcard_dev("down", "--dir", str(folder)).code == EXIT_OK


def test_pods_are_reviewed_and_up_says_it_is_for_evaluation(foreign_cluster: Cluster, evaluation: Development) -> None:
    assert "for evaluation: it runs on this machine" in evaluation.printed
    assert "Its scheduler is not changed" in evaluation.printed
    assert resources(create(foreign_cluster, share("one")).must())["limits"] == {
        names.VCUDA_CORE: "30",
        names.VCUDA_MEMORY: "20",
    }
    assert "[HC002]" in create(foreign_cluster, bad("two")).body["message"]


@pytest.mark.usefixtures("evaluation")
def test_webhooks_of_an_evaluation_fail_open(foreign_cluster: Cluster) -> None:
    hooks = [
        hook for path in WRITTEN_COLLECTIONS[:2] for item in items(foreign_cluster, path) for hook in item["webhooks"]
    ]
    assert len(hooks) == 7
    assert {hook["failurePolicy"] for hook in hooks} == {"Ignore"}
    assert {hook["clientConfig"]["url"].split(":")[1] for hook in hooks} == {
        f"//{foreign_cluster.network.host_address}"
    }


def test_the_printed_commands_work_and_leave_nothing(foreign_cluster: Cluster, evaluation: Development) -> None:
    commands = [line.strip() for line in evaluation.printed.splitlines() if line.startswith("   kubectl")]
    repaired, wrong, quota = (evaluation.shell(command) for command in commands)
    assert json.loads(repaired.stdout)["limits"][names.VCUDA_CORE] == "30", repaired
    assert wrong.code == 1 and "[HC002]" in wrong.stderr
    assert f"requests.{names.VCUDA_CORE}" in quota.stdout, quota
    assert items(foreign_cluster, "/api/v1/pods") == [] and items(foreign_cluster, "/api/v1/resourcequotas") == []


def test_status_shows_the_webhook_and_its_registration(foreign_cluster: Cluster, evaluation: Development) -> None:
    found = status(evaluation.folder)
    assert found["healthy"] is True and found["server"] == foreign_cluster.url
    assert [part["name"] for part in found["parts"]] == ["halfcard-admission", "registration"]
    foreign_cluster.request("DELETE", f"{HOOKS}/mutatingwebhookconfigurations/halfcard").must()
    shown = halfcard_dev("status", "--dir", str(evaluation.folder))
    assert shown.code == EXIT_REFUSED and "is missing in the cluster" in shown.stdout


def test_a_second_up_says_that_it_runs_and_another_cluster_needs_another_folder(
    foreign_cluster: Cluster, evaluation: Development
) -> None:
    again = dev_in(foreign_cluster, "up", "--context", CONTEXT, "--dir", str(evaluation.folder))
    assert again.code == EXIT_OK and "It is running already." in again.stdout
    other = halfcard_dev("up", "--dir", str(evaluation.folder))
    assert other.code == EXIT_USAGE and f'context "{CONTEXT}"' in other.stderr


def test_down_leaves_the_cluster_as_it_was(
    foreign_cluster: Cluster, objects_before: list[str], evaluation: Development
) -> None:
    assert existing_objects(foreign_cluster) != objects_before
    for _ in range(2):
        assert halfcard_dev("down", "--dir", str(evaluation.folder)).code == EXIT_OK
        assert existing_objects(foreign_cluster) == objects_before
        assert not evaluation.folder.exists() and processes_with(str(evaluation.folder)) == []


def test_a_killed_evaluation_blocks_nothing_and_down_still_cleans_up(
    foreign_cluster: Cluster, objects_before: list[str], evaluation: Development
) -> None:
    os.kill(DevFolder(evaluation.folder).pid(), signal.SIGKILL)
    wait_until(lambda: processes_with(str(evaluation.folder)) == [], what="the webhook to end with its supervisor")
    needs_no_repair = complete(pod("train").asks(core="30", memory="20"))
    create(foreign_cluster, needs_no_repair).must()
    deployments = "/apis/apps/v1/namespaces/default/deployments?dryRun=All"
    foreign_cluster.request("POST", deployments, workload("Deployment", "train", needs_no_repair)).must()
    assert halfcard_dev("down", "--dir", str(evaluation.folder)).code == EXIT_OK
    assert existing_objects(foreign_cluster) == objects_before


def test_an_unreachable_webhook_is_reported_and_everything_is_undone(
    foreign_cluster: Cluster, objects_before: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "dev"
    done = dev_in(foreign_cluster, "up", "--context", CONTEXT, "--advertise", "127.0.0.1", "--dir", str(folder))
    assert done.code == EXIT_CANNOT_START
    assert f"the API server {foreign_cluster.url} does not reach Halfcard at https://127.0.0.1:" in done.stderr
    assert "--advertise HOST" in done.stderr
    assert existing_objects(foreign_cluster) == objects_before
    assert not folder.exists() and processes_with(str(folder)) == []


def test_an_existing_installation_is_left_alone(foreign_cluster: Cluster, tmp_path: Path) -> None:
    foreign_cluster.create_namespace(names.NAMESPACE)
    objects_before = existing_objects(foreign_cluster)
    try:
        done = dev_in(foreign_cluster, "up", "--context", CONTEXT, "--dir", str(tmp_path / "dev"))
        assert done.code == EXIT_CANNOT_START and f'"{names.NAMESPACE}" already exists' in done.stderr
        assert existing_objects(foreign_cluster) == objects_before
    finally:
        foreign_cluster.kubectl("delete", "namespace", names.NAMESPACE)


def test_an_unknown_context_is_named(foreign_cluster: Cluster, tmp_path: Path) -> None:
    done = dev_in(foreign_cluster, "up", "--context", "elsewhere", "--dir", str(tmp_path / "dev"))
    assert done.code == EXIT_CANNOT_START and 'no usable context "elsewhere"' in done.stderr
    assert not (tmp_path / "dev").exists()


@pytest.mark.parametrize(
    "arguments", [("up", "--advertise", "10.0.0.1"), ("up", "--context", ""), ("down", "--context", CONTEXT)]
)
def test_an_option_in_the_wrong_place_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert halfcard_dev(*arguments, "--dir", str(tmp_path / "dev")).code == EXIT_USAGE
