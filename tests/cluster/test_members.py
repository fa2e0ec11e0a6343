"""What the members of a namespace, with the stock roles `view` and `edit`, are told: no name of another namespace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from cli.__main__ import main as halfcard
from devcluster.control_plane.users import User
from devcluster.services.quota_installation import QuotaInstallation, cluster_with_quotas, quota
from halfcard import names

from .manifests import bad, share

OURS, THEIRS = "team-ours", "secret-team"  # theirs is before ours in the queue, also within the same second
SHARED, EACH = "research", "standard"


@dataclass(frozen=True)
class Member:
    """A user with one of the stock roles in one namespace."""

    user: User
    quotas: QuotaInstallation

    def usage(self, name: str) -> Mapping[str, Any]:
        path = f"{names.QUOTA_API}/namespaces/{OURS}/{names.GPU_QUOTA_USAGES}/{name}"
        answer = self.quotas.cluster.client.request(self.user, "GET", path)
        found: Mapping[str, Any] = answer.body["status"] if answer.ok else {}
        return found

    def run(self, capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
        code = halfcard([*command, "--kubeconfig", str(self.user.kubeconfig)])
        said = capsys.readouterr()
        return code, said.out, said.err


def create(quotas: QuotaInstallation, space: str, name: str) -> None:
    """Creates a pod; a new quota may have to be counted first."""
    quotas.cluster.wait_until(lambda: quotas.webhook.create(space, share(name)).ok, what=f"{space}/{name} to be stored")


@pytest.fixture(scope="module")
def quotas() -> Iterator[QuotaInstallation]:
    with cluster_with_quotas() as service:
        for name in (OURS, THEIRS):
            service.cluster.create_namespace(name)
        service.allow_together(SHARED, hard={"cores": 90}, onExceeded="Gate", namespaces={"names": [OURS, THEIRS]})
        default = quota(EACH, {"hard": {"cores": 500}, "asDefault": True, "namespaces": {"names": [OURS]}})
        assert service.cluster.kubectl("apply", "-f-", stdin=json.dumps(default)).code == 0
        for space, pod in ((THEIRS, "hidden-one"), (THEIRS, "hidden-two"), (OURS, "train")):
            create(service, space, pod)
        yield service


def member(quotas: QuotaInstallation, role: str) -> Member:
    user = quotas.cluster.service_account(OURS, role)
    granted = f"--serviceaccount={OURS}:{role}"
    quotas.cluster.kubectl("create", "rolebinding", role, "-n", OURS, f"--clusterrole={role}", granted)
    return Member(user, quotas)


@pytest.fixture(scope="module")
def viewer(quotas: QuotaInstallation) -> Member:
    found = member(quotas, "view")
    quotas.cluster.wait_until(lambda: found.usage(SHARED).get("pods") == 1, what="the usage to be written")
    return found


def test_a_viewer_reads_what_a_shared_quota_has_left_and_no_foreign_name(viewer: Member) -> None:
    viewer.quotas.cluster.wait_until(
        lambda: viewer.usage(SHARED).get("cores") == "90/90", what="the usage of all", seconds=45
    )
    status = viewer.usage(SHARED)
    assert (status["counts"], status["here"]["cores"], status["onExceeded"]) == ("Together", "30", "Gate")
    assert [each["pod"] for each in status["holders"]] == [f"{OURS}/train"]
    assert THEIRS not in json.dumps(status) and "hidden" not in json.dumps(status)


def test_a_viewer_reads_what_a_default_quota_has_left(viewer: Member) -> None:
    assert viewer.usage(EACH)["cores"] == "30/500" and viewer.usage(EACH)["counts"] == "Namespace"


def test_quota_explain_answers_a_viewer(viewer: Member, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = viewer.run(capsys, "quota", "explain", OURS, "-o", "json", "--pod", "cores=500")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert {each["name"]: each["free"]["cores"] for each in found["quotas"]} == {SHARED: 0, f"{EACH} for {OURS}": 470}
    assert [each for each in found["pod"]["refused"] if EACH in each] and THEIRS not in out and "hidden" not in out
    assert viewer.run(capsys, "quota", "explain", THEIRS)[0] == 2


WAITS: Final = "waits"


@pytest.fixture(scope="module")
def waiting(viewer: Member) -> Member:
    """A pod of ours behind a pod of theirs in the queue of the shared quota."""
    quotas = viewer.quotas
    for space, pod in ((THEIRS, "hidden-three"), (OURS, WAITS)):
        create(quotas, space, pod)
    selector = f"involvedObject.name={WAITS},reason=WaitsForQuota"
    events = f"/api/v1/namespaces/{OURS}/events?fieldSelector={selector}"
    quotas.cluster.wait_until(
        lambda: bool(quotas.cluster.client.request(viewer.user, "GET", events).must()["items"]),
        what="the Event of the pod that waits",
    )
    return viewer


def test_explain_answers_a_viewer_from_the_pod_and_its_events(
    waiting: Member, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = waiting.run(capsys, "explain", WAITS, "-n", OURS)
    text = " ".join(out.split())
    assert (code, err) == (1, "")
    assert ": 30 % and 5120 MiB of a card" in text and f"halfcard quota explain {OURS}" in text
    assert (
        f"Halfcard says WaitsForQuota: behind a pod of another namespace, which waits for the same of quota {SHARED}"
        in text
    )
    assert "ClusterRole halfcard-inspect" in text and THEIRS not in out and "hidden" not in out
    assert waiting.run(capsys, "explain", "hidden-one", "-n", THEIRS)[0] == 2


def test_explain_answers_before_a_pod_exists(
    quotas: QuotaInstallation, waiting: Member, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [share(WAITS), bad("odd")]}))
    command = ("explain", "-f", str(file), "-n", OURS)
    code, out, err = member(quotas, "edit").run(capsys, *command, "-o", "json")
    stored, refused = json.loads(out)["planned"]
    assert (code, err, refused["explanation"]) == (1, "", None)
    assert "HC002" in refused["refusal"] and "exceeded quota: research" in stored["waits"][0]
    assert stored["explanation"]["asks"] == {"containers-0": "30 % and 5120 MiB of a card"}
    code, out, err = waiting.run(capsys, *command)
    assert (code, out) == (2, "") and "ask for the ClusterRole edit there" in err


def test_nobody_but_the_quota_service_writes_what_members_read(quotas: QuotaInstallation, viewer: Member) -> None:
    editor = member(quotas, "edit")
    path = f"{names.QUOTA_API}/namespaces/{OURS}/{names.GPU_QUOTA_USAGES}/{SHARED}"
    assert quotas.cluster.client.request(editor.user, "DELETE", path).status == 403
    assert editor.usage(SHARED) == viewer.usage(SHARED) != {}


def test_a_deleted_usage_is_written_again_and_ends_with_its_quota(viewer: Member) -> None:
    cluster = viewer.quotas.cluster
    assert cluster.kubectl("delete", "gqu", EACH, "-n", OURS).code == 0
    cluster.wait_until(lambda: viewer.usage(EACH).get("cores") == "30/500", what="the usage to be written again")
    assert cluster.kubectl("delete", "cgq", EACH).code == 0
    cluster.wait_until(lambda: not viewer.usage(EACH), what="the usage to be deleted")
