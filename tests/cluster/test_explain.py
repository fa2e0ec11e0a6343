"""Pods that are pending for another reason than cards: the scheduler's own words come first, and the exit code is 1."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from cli.__main__ import main
from devcluster.control_plane.pki import ClusterAuthority
from devcluster.objects import Object
from extender.refused.untried_pods import UntriedPods
from halfcard import names
from halfcard.pod.stored_pod import StoredPod
from kube.api.calls import ApiCalls
from kube.api.kubeconfig import from_kubeconfig
from serving.log import Log
from tests.builders import PodBuilder, pod
from tests.extender.populated import state_of

from .manifests import complete, workload
from .site import NO_SCHEDULER, Site

AMOUNTS: Final = {names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 20}
SHARE: Final = pod("train").container(limits=AMOUNTS)
CLAIM: Final = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}


class Explain:
    """`halfcard explain` of the site's pod as JSON and as text."""

    def __init__(self, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
        self.site = site
        self._capsys = capsys

    def __call__(self, target: str = "train") -> tuple[str, Mapping[str, Any]]:
        """Returns the text in one line and the JSON of a pod that is held back."""
        text, document = (self._say(target, form) for form in ("text", "json"))
        return " ".join(text.split()), json.loads(document)

    def _say(self, target: str, form: str) -> str:
        kubeconfig = str(self.site.cluster.admin.kubeconfig)
        code = main(["explain", target, "-n", self.site.namespace, "-o", form, "--kubeconfig", kubeconfig])
        said = self._capsys.readouterr()
        assert (code, said.err) == (1, "")
        return said.out

    def wait_for_words(self) -> None:
        def has_words() -> bool:
            conditions = self.site.pod("train")["status"].get("conditions", ())
            return any(each["type"] == "PodScheduled" and each.get("message") for each in conditions)

        self.site.cluster.wait_until(has_words, what="the scheduler to say why the pod has no node")


@pytest.fixture
def explain(site: Site, capsys: pytest.CaptureFixture[str]) -> Explain:
    site.add_nodes("gpu-manager", cards=1)
    return Explain(site, capsys)


CAUSES: Final[Mapping[str, tuple[PodBuilder, Mapping[str, Any], str]]] = {
    "CPU": (pod("train").container(limits={**AMOUNTS, "cpu": "1k"}), {}, "Insufficient cpu"),
    "selector": (SHARE, {"nodeSelector": {"disk": "ssd"}}, "didn't match Pod's node affinity/selector"),
    "PVC": (SHARE, {"volumes": [CLAIM]}, 'persistentvolumeclaim "missing" not found'),
}


@pytest.mark.parametrize(("built", "fields", "words"), CAUSES.values(), ids=CAUSES.keys())
def test_the_schedulers_words_come_before_halfcards(
    explain: Explain, built: PodBuilder, fields: Mapping[str, Any], words: str
) -> None:
    explain.site.create(built, **fields)
    explain.wait_for_words()
    text, found = explain()
    assert words in found["scheduling"]["report"]["message"]
    assert text.index("kube-scheduler says: ") < text.index(words) < text.index("Halfcard has no objection: it fits on")


def test_a_taint_is_named_in_the_schedulers_words(explain: Explain) -> None:
    node = f"gpu-manager-{explain.site.model.lower()}-0000"
    explain.site.cluster.kubectl("taint", "node", node, "team=a:NoSchedule")
    explain.site.create(SHARE)
    explain.wait_for_words()
    text, _ = explain()
    assert text.index("untolerated taint") < text.index("Halfcard has no objection")


def test_a_gate_is_named_before_halfcards_answer(explain: Explain) -> None:
    explain.site.create(SHARE.gated("example.com/review"))
    text, found = explain()
    assert found["gates"] == ["example.com/review"] and found["scheduling"]["report"] is None
    assert text.index("scheduling gate example.com/review") < text.index("Halfcard has no objection")


def test_a_scheduler_that_does_not_run_is_named_with_what_is_known_of_it(explain: Explain) -> None:
    explain.site.create(SHARE, schedulerName="volcano")
    text, found = explain()
    served, untried = found["scheduling"]["obstacles"]
    assert 'Halfcard does not serve its scheduler: got "volcano"' in served
    assert "no other pods of it on nodes, no events. Does it run?" in untried
    assert text.index("volcano") < text.index("Halfcard has no objection")


def test_a_node_whose_agent_is_gone_is_not_offered(explain: Explain) -> None:
    """Kubelet withdraws the resources of an agent that is gone: the node has them, and pods may have none."""
    node = f"gpu-manager-{explain.site.model.lower()}-0000"
    withdrawn = {"status": {"allocatable": dict.fromkeys(AMOUNTS, "0")}}
    explain.site.cluster.client.merge(explain.site.cluster.admin, f"/api/v1/nodes/{node}/status", withdrawn)
    explain.site.create(SHARE)
    explain.wait_for_words()
    text, found = explain()
    assert f"Insufficient {names.VCUDA_CORE}" in text
    (seen,) = (each for each in found["prospects"]["nodes"] if each["name"] == node)
    assert seen["reason"].startswith(f"offers no {names.VCUDA_CORE}") and seen["score"] is None


@pytest.fixture
def scheduler_again(site: Site) -> Iterator[None]:
    """The scheduler's own configuration after a test that breaks it."""
    yield
    site.extender.schedule_by(site.extender.recommended())


@pytest.mark.usefixtures("scheduler_again")
def test_a_scheduler_that_does_not_trust_the_extender_is_told_which_file_to_compare(
    explain: Explain, tmp_path: Path
) -> None:
    other = ClusterAuthority(tmp_path / "other")
    wait_for_advice(explain, {"caFile": str(other.certificate)}, "caFile is of another CA")


@pytest.mark.usefixtures("scheduler_again")
def test_a_scheduler_that_the_extender_does_not_trust_is_told_which_file_to_compare(
    explain: Explain, tmp_path: Path
) -> None:
    other = ClusterAuthority(tmp_path / "other").client("caller", name="system:kube-scheduler", groups=[])
    files = {"certFile": str(other.certificate), "keyFile": str(other.key)}
    wait_for_advice(explain, files, "client certificate")


def wait_for_advice(explain: Explain, files: Mapping[str, str], advice: str) -> None:
    """Waits for the advice about a pod whose scheduler has these files for its calls to the extender.

    The first call after the scheduler's start may end in another way, such as too late.
    """
    extender = explain.site.extender
    configuration = extender.recommended()
    configuration["extenders"][0]["tlsConfig"] |= files
    extender.schedule_by(configuration)
    explain.site.create(SHARE)
    explain.wait_for_words()

    def remark() -> str:
        return str(explain()[1]["scheduling"]["remark"])

    explain.site.cluster.wait_until(
        lambda: advice in remark(), what=f"the advice {advice}", seconds=90, details=lambda: str(explain()[1])
    )
    text = explain()[0]
    assert text.index(names.FILTER_PATH) < text.index("Halfcard has no objection")


# --- workloads


@pytest.mark.parametrize(("kind", "typed"), [("Deployment", "deploy"), ("StatefulSet", "sts"), ("Job", "job")])
def test_a_workload_without_pods_says_why_its_controller_creates_none(
    site: Site, capsys: pytest.CaptureFixture[str], kind: str, typed: str
) -> None:
    made: Object = workload(kind, "web", complete(SHARE.specified(serviceAccountName="missing")))
    done = site.cluster.kubectl("-n", site.namespace, "create", "-f", "-", stdin=json.dumps(made))
    assert done.code == 0, done.stderr

    def explained() -> str:
        kubeconfig = str(site.cluster.admin.kubeconfig)
        assert main(["explain", f"{typed}/web", "-n", site.namespace, "--kubeconfig", kubeconfig]) == 1
        return " ".join(capsys.readouterr().out.split())

    site.cluster.wait_until(lambda: "Its controller says" in explained(), what="the controller's words")
    said = explained()
    assert said.startswith(f"{kind} {site.namespace}/web wants 1 pod and has none. Its controller says: ")
    assert 'service account "missing"' in said or 'serviceaccount "missing" not found' in said


# --- rights


def test_a_member_with_the_named_role_may_do_what_was_refused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    member = site.cluster.tenant(site.namespace, "mia")
    commands = ("inspect", "explain", "quota report", "version")

    def codes() -> dict[str, int]:
        return {each: main([*each.split(), "--kubeconfig", str(member.kubeconfig)]) for each in commands}

    assert codes() == dict.fromkeys(commands, 2)
    said = capsys.readouterr().err
    assert said.count("--clusterrole=halfcard-inspect --user=") == len(commands)
    binding = ("create", "clusterrolebinding", "mia-inspects", "--clusterrole=halfcard-inspect")
    site.cluster.kubectl(*binding, f"--user={said.split('--user=')[1].split()[0]}")
    site.cluster.wait_until(lambda: set(codes().values()) <= {0, 1}, what="the role to count")


async def test_a_pod_that_no_scheduler_tries_gets_an_event_by_the_rights_of_the_extender(site: Site) -> None:
    stored = site.create_unscheduled(SHARE)
    access = from_kubeconfig(site.extender.account.kubeconfig)
    state = state_of([], [msgspec.convert(stored, StoredPod)])
    calls, later = ApiCalls(access), datetime.now(UTC) + timedelta(hours=1)
    untried = UntriedPods(access, state, calls, Log(), frozenset({"default-scheduler"}), lambda: True, lambda: later)
    await untried.report()
    await untried.report()
    calls.close()
    events = site.cluster.request("GET", f"/api/v1/namespaces/{site.namespace}/events").must()["items"]
    (event,) = [each for each in events if each["reason"] == "NoScheduler"]
    assert event["involvedObject"]["uid"] == stored["metadata"]["uid"]
    assert f'got "{NO_SCHEDULER}"' in event["message"]
