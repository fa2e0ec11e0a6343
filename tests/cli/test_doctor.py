from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import cli.doctor
import cli.output.terminal
from cli.__main__ import main
from cli.diagnosis.quotas.gpu_quota_checks import CRDS
from cli.output.terminal import Progress
from devcluster.waiting import wait_until
from halfcard import __version__, names
from halfcard.cards import Card
from halfcard.inventory import write_inventory
from tests.docs.pages import fences
from tests.docs.shell import shows

from .api_stand_in import REVIEWS, Object, api_server
from .command import ROOT, too_wide
from .diagnosis.healthy import DENIED, crd, registration

OURS: Final = f"/api/v1/namespaces/{names.NAMESPACE}"
WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1"
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/{names.EXTENDER_SERVICE}"
NODE: Final[dict[str, Any]] = {
    "metadata": {
        "name": "gpu-1",
        "labels": {names.AGENT_LABEL: "true"},
        "annotations": {names.INVENTORY: write_inventory([Card(0, "T4", 15109, "GPU-0")])},
    },
    "status": {
        "allocatable": {"cpu": "8", names.VCUDA_CORE: "100"},
        "conditions": [{"type": names.CARDS_CONDITION, "status": "True"}],
        "nodeInfo": {
            "kubeletVersion": "v1.36.0",
            "containerRuntimeVersion": "containerd://2.4.0",
            "architecture": "amd64",
        },
    },
}
IMAGE: Final = "halfcard.dev/halfcard:1"
CREATED: Final = "2026-01-01T00:00:00Z"
POD: Final[dict[str, Any]] = {
    "metadata": {
        "name": "work",
        "namespace": "team",
        "uid": "u",
        "creationTimestamp": "2026-11-01T00:00:00Z",
        "annotations": {names.PLACEMENT: json.dumps({"node": "gpu-1", "cards": {"main": ["GPU-0"]}})},
    },
    "spec": {
        "nodeName": "gpu-1",
        "containers": [{"name": "main", "resources": {"limits": {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}}}],
    },
    "status": {"phase": "Running"},
}


def lease() -> Object:
    renewed = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    spec = {"holderIdentity": "one", "renewTime": renewed}
    return {"metadata": {"creationTimestamp": CREATED}, "spec": spec}


def healthy() -> dict[str, Any]:
    mutating, validating = registration()
    slices = {
        "metadata": {"labels": {"kubernetes.io/service-name": names.ADMISSION_SERVICE}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
    }
    return {
        "/version": {"gitVersion": "v1.34.0"},
        OURS: {"metadata": {"name": names.NAMESPACE}, "status": {"phase": "Active"}},
        "/api/v1/nodes": [NODE],
        "/api/v1/pods": [POD],
        f"{WEBHOOKS}/mutatingwebhookconfigurations": [mutating],
        f"{WEBHOOKS}/validatingwebhookconfigurations": [validating],
        f"{OURS}/services/{names.ADMISSION_SERVICE}": {"metadata": {"name": names.ADMISSION_SERVICE}},
        f"/apis/discovery.k8s.io/v1/namespaces/{names.NAMESPACE}/endpointslices": [slices],
        LEASE: lease(),
        **{f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}": crd(kind) for name, kind in CRDS.items()},
    }


def judged(pod: Object) -> tuple[int, str]:
    """As Halfcard judges the two that are tried."""
    return (403, DENIED) if names.PLACEMENT in pod["metadata"]["annotations"] else (201, "")


@dataclass(frozen=True)
class Printed:
    code: int
    out: str
    err: str


class Doctor:
    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capture = capture

    def __call__(self, *arguments: str, **changes: Any) -> Printed:
        """Of a healthy cluster, but for what is there at some paths."""
        return self.of({**healthy(), **changes}, *arguments)

    def of(self, there: Mapping[str, Any], *arguments: str, judge: Any = judged) -> Printed:
        with api_server(self._folder, there, judge) as kubeconfig:
            code = main(["doctor", "--kubeconfig", str(kubeconfig), *arguments])
        return Printed(code, *self._capture.readouterr())


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(tmp_path, capsys)


def without(*paths: str) -> dict[str, Any]:
    return {path: found for path, found in healthy().items() if path not in paths}


def test_a_healthy_cluster_is_one_line_and_exit_code_0(doctor: Doctor) -> None:
    printed = doctor()
    assert (printed.code, printed.err) == (0, "")
    assert printed.out.startswith("Nothing is wrong: ") and printed.out.endswith("checks of 1 node and 1 pod.\n")


def test_a_broken_check_shows_where_got_rule_fix_and_command_and_exits_1(doctor: Doctor) -> None:
    """As the page shows it."""
    printed = doctor.of(without(f"{WEBHOOKS}/validatingwebhookconfigurations"))
    example = next(fence for fence in fences(ROOT / "docs" / "doctor.md") if fence.language == "text")
    assert printed.code == 1
    assert shows(example.text, printed.out), printed.out


def test_a_warning_fails_only_with_strict(doctor: Doctor) -> None:
    spelled = {"metadata": {"namespace": "a", "name": "q"}, "spec": {"hard": {"requests.tencent.com/vcuda-cor": "1"}}}
    there = {**healthy(), "/api/v1/resourcequotas": [spelled]}
    assert doctor.of(there).code == 0
    strict = doctor.of(there, "--strict")
    assert (strict.code, "warning: quota-unknown-key" in strict.out) == (1, True)


def test_the_json_holds_every_finding(doctor: Doctor) -> None:
    printed = doctor.of(without(LEASE), "-o", "json")
    said = json.loads(printed.out)
    assert (printed.code, said["healthy"]) == (1, False)
    assert said["findings"] == [
        {
            "check": "extender-not-led",
            "severity": "broken",
            "where": f"Lease {names.NAMESPACE}/{names.EXTENDER_SERVICE}",
            "got": "it does not exist",
            "rule": "one replica of the extender holds the Lease and renews it",
            "fix": "start the extender, or read in its log why no replica leads",
            "command": "kubectl -n halfcard-system logs -l app.kubernetes.io/name=halfcard-extender --prefix",
            "cause": "",
        }
    ]
    system = {"kubelet": "v1.36.0", "runtime": "containerd://2.4.0", "architecture": "amd64"}
    assert said["versions"] == {
        "doctor": __version__,
        "kubernetes": "v1.34.0",
        "images": [],
        "nodes": [{"node": "gpu-1", **system}],
    }


# --- Halfcard's own processes ----------------------------------------------------------------------------------------


def deployment(account: str, **spec: Any) -> dict[str, Any]:
    template = {"serviceAccountName": account, "containers": [{"image": IMAGE}]}
    return {
        "metadata": {"namespace": names.NAMESPACE, "name": account, "generation": 1},
        "spec": {"template": {"spec": template}, **spec},
        "status": {"observedGeneration": 1, "replicas": spec.get("replicas", 1)},
    }


def crashed(account: str) -> dict[str, Any]:
    container = {
        "image": IMAGE,
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 2, "reason": "Error"}},
    }
    return {
        "metadata": {"name": "one", "creationTimestamp": CREATED},
        "spec": {"serviceAccountName": account, "nodeName": "gpu-1"},
        "status": {"containerStatuses": [container]},
    }


def of_process(account: str, **more: Any) -> dict[str, Any]:
    return {**healthy(), "/apis/apps/v1/deployments": [deployment(account)], **more}


def findings(printed: Printed) -> dict[str, dict[str, str]]:
    return {each["check"]: each for each in json.loads(printed.out)["findings"]}


def test_a_crash_is_shown_with_the_last_line_of_the_log(doctor: Doctor) -> None:
    there = of_process(names.EXTENDER_SERVICE) | {
        f"{OURS}/pods": [crashed(names.EXTENDER_SERVICE)],
        f"{OURS}/pods/one/log": b"starting\nhalfcard: settings.yaml: packing: unknown\n\n",
        f"{OURS}/services/{names.EXTENDER_SERVICE}": {"metadata": {"name": names.EXTENDER_SERVICE}},
    }
    printed = doctor.of({path: each for path, each in there.items() if path != LEASE}, "-o", "json")
    found = findings(printed)
    assert list(found) == ["process-crashes"]
    assert found["process-crashes"]["got"].endswith(": halfcard: settings.yaml: packing: unknown")
    consequences = {each["check"]: each["cause"] for each in json.loads(printed.out)["consequences"]}
    assert consequences == {"service-empty": "process-crashes", "extender-not-led": "process-crashes"}
    assert (
        "this explains: service-empty, extender-not-led"
        in doctor.of({path: each for path, each in there.items() if path != LEASE}).out
    )


def test_a_missing_right_is_named_with_its_role_and_the_file_that_grants_it(doctor: Doctor) -> None:
    there = of_process(names.ADMISSION_SERVICE) | {REVIEWS: ["watch nodes", "get replicasets"]}
    found = findings(doctor.of(there, "-o", "json"))
    assert list(found) == ["right-missing"]
    assert found["right-missing"]["got"] == (
        "it may not watch nodes, get replicasets: ClusterRole halfcard-admission or its binding does not grant it"
    )
    assert found["right-missing"]["command"] == "kubectl apply -f deploy/chart/halfcard/rbac/admission.yaml"


def test_who_may_not_ask_about_rights_reads_one_note(doctor: Doctor) -> None:
    there = of_process(names.ADMISSION_SERVICE) | {REVIEWS: "subjectaccessreviews is forbidden"}
    printed = doctor.of(there)
    assert (printed.code, printed.out.count("subjectaccessreviews is forbidden")) == (0, 1)


def test_settings_without_their_entry_are_unusable(doctor: Doctor) -> None:
    empty = {"metadata": {"name": names.SETTINGS_MAP}, "data": {"setings.yaml": "{}"}}
    printed = doctor.of({**healthy(), f"{OURS}/configmaps/{names.SETTINGS_MAP}": empty}, "-o", "json")
    assert findings(printed)["settings-unusable"]["got"] == "it has no entry settings.yaml"


# --- no installation -------------------------------------------------------------------------------------------------

BARE: Final[dict[str, Any]] = {"/version": {"gitVersion": "v1.36.0"}, "/api/v1/nodes": [NODE], "/api/v1/pods": []}


def store(_: Object) -> tuple[int, str]:
    """As a cluster without webhooks does."""
    return 201, ""


def test_a_cluster_without_halfcard_is_one_line_and_exit_code_5(doctor: Doctor) -> None:
    printed = doctor.of(BARE, judge=store)
    assert (printed.code, printed.err) == (5, "")
    assert printed.out == (
        "Not installed: no webhook, Service, Lease or workload of Halfcard's. See docs/install.md.\n"
    )


def test_the_json_says_that_halfcard_is_not_installed(doctor: Doctor) -> None:
    printed = doctor.of(BARE, "-o", "json", judge=store)
    said = json.loads(printed.out)
    assert (printed.code, said["healthy"], said["installed"]) == (5, False, False)
    (found,) = said["findings"]
    assert (found["check"], said["consequences"]) == ("not-installed", [])
    assert found["command"].startswith("helm upgrade --install halfcard ")
    assert said["versions"]["kubernetes"] == "v1.36.0"


def test_who_may_not_read_webhooks_is_not_told_that_halfcard_is_missing(doctor: Doctor) -> None:
    printed = doctor.of({**BARE, f"{WEBHOOKS}/mutatingwebhookconfigurations": "no"}, "-o", "json", judge=store)
    assert json.loads(printed.out)["installed"]


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_it_waits_until_nothing_is_broken_and_says_what_is(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(cli.doctor, "_PAUSE_S", 0.0)
    monkeypatch.setattr(Progress, "say", lambda _, what: said.append(what))
    there, tries = without(LEASE), count()

    def repaired(pod: Object) -> tuple[int, str]:
        if next(tries) == 2:  # the second look begins: two pods are tried in each
            there[LEASE] = lease()
        return judged(pod)

    printed = doctor.of(there, "--wait", "600", judge=repaired)
    assert (printed.code, printed.out[:16], next(tries)) == (0, "Nothing is wrong", 4)
    assert [each.partition(": ")[2] for each in said if " s left: " in each] == [
        "1 broken, 0 warnings, 0 notes: extender-not-led"
    ]


def test_it_stops_waiting_at_the_deadline(doctor: Doctor) -> None:
    assert doctor.of(without(LEASE), "--wait", "0").code == 1
    assert doctor.of(BARE, "--wait", "0", judge=store).code == 5


def test_a_time_that_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--wait", "soon"])
    assert 'got "soon"; write a number of seconds' in capsys.readouterr().err


# --- rights of the user ----------------------------------------------------------------------------------------------


def test_an_unreadable_source_is_a_note_and_the_rest_is_checked(doctor: Doctor) -> None:
    secret = f"{OURS}/secrets/{names.ADMISSION_TLS}"
    printed = doctor.of({**without(LEASE), secret: "secrets is forbidden: no"})
    assert "note: not-looked-at" in printed.out and "secrets is forbidden: no" in printed.out
    assert "broken: extender-not-led" in printed.out


@pytest.mark.parametrize(
    "path", [f"{WEBHOOKS}/mutatingwebhookconfigurations", LEASE, "/api/v1/resourcequotas", f"{OURS}/pods"]
)
def test_any_permission_may_be_missing(doctor: Doctor, path: str) -> None:
    printed = doctor.of({**healthy(), path: "forbidden here"}, "-o", "json")
    assert [each["check"] for each in json.loads(printed.out)["findings"]] == ["not-looked-at"]


def test_without_the_right_to_create_pods_the_dry_runs_are_noted_as_missing(doctor: Doctor) -> None:
    def refuse(_: Object) -> tuple[int, str]:
        return 403, 'pods is forbidden: User "u" cannot create resource "pods" in API group ""'

    printed = doctor.of(healthy(), judge=refuse)
    assert printed.code == 0
    assert printed.out.count("POST /api/v1/namespaces/default/pods") == 2


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods"])
def test_if_nodes_or_pods_cannot_be_read_the_exit_code_is_2(doctor: Doctor, path: str) -> None:
    printed = doctor.of({**healthy(), path: "not for you"})
    assert (printed.code, printed.out) == (2, "")
    assert "halfcard doctor: the API server answered 403" in printed.err and "not for you" in printed.err


def test_without_an_api_server_the_exit_code_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(tmp_path, {}, judged) as kubeconfig:
        pass
    assert main(["doctor", "--kubeconfig", str(kubeconfig)]) == 2
    assert "the API server cannot be reached" in capsys.readouterr().err


def test_an_invalid_answer_of_the_api_server_exits_2(doctor: Doctor) -> None:
    printed = doctor.of({**healthy(), LEASE: b"<html>sign in</html>"})
    assert (printed.code, printed.out) == (2, "")
    assert "this is not an API server" in printed.err


def test_the_settings_in_the_cluster_count_unless_others_are_named(doctor: Doctor, tmp_path: Path) -> None:
    there = {**healthy(), f"{OURS}/configmaps/{names.SETTINGS_MAP}": _settings("exempt_namespaces: [gpu-operator]")}
    assert "warning: webhook-differs" in doctor.of(there).out
    file = tmp_path / "settings.yaml"
    file.write_text("{}")
    assert doctor.of(there, "--settings", str(file)).code == 0
    assert "Nothing is wrong" in doctor.of(there, "--settings", str(file)).out


def test_invalid_settings_are_a_finding_and_no_failure_of_the_doctor(doctor: Doctor) -> None:
    there = {**healthy(), f"{OURS}/configmaps/{names.SETTINGS_MAP}": _settings("packing: [")}
    printed = doctor.of(there)
    assert (printed.code, "broken: settings-unusable" in printed.out) == (1, True)


def _settings(text: str) -> Object:
    return {"metadata": {"name": names.SETTINGS_MAP}, "data": {"settings.yaml": text}}


def test_many_findings_of_one_check_are_cut_and_lines_fit(doctor: Doctor) -> None:
    hard = {f"limits.{names.VCUDA_CORE}": "100", f"limits.{names.VCUDA_MEMORY}": "100"}
    quotas = [{"metadata": {"namespace": "team", "name": f"q{at}"}, "spec": {"hard": hard}} for at in range(7)]
    printed = doctor.of({**healthy(), "/api/v1/resourcequotas": quotas})
    assert "… and 2 more; -o json lists all" in printed.out
    assert "    halfcard quota repair team\n" in printed.out
    assert too_wide(printed.out) == []


def test_two_pods_that_each_need_all_of_one_card_are_found(doctor: Doctor) -> None:
    def alone(name: str) -> Object:
        containers = [{"name": "main", "resources": {"limits": {names.VCUDA_CORE: "100"}}}]
        return {
            **POD,
            "metadata": {**POD["metadata"], "name": name, "uid": name},
            "spec": {**POD["spec"], "containers": containers},
        }

    printed = doctor.of({**healthy(), "/api/v1/pods": [alone("one"), alone("two")]})
    assert printed.code == 1
    assert "pod team/two on node gpu-1: card 0 has less left than the pod uses of it" in printed.out


def test_a_long_command_is_wrapped_for_a_shell(doctor: Doctor) -> None:
    metadata = {
        "name": "p" * 60,
        "namespace": "n" * 60,
        "uid": "v",
        "annotations": {names.PLACEMENT: ""},
    }
    waiting = {"metadata": metadata, "spec": {"containers": []}}
    printed = doctor.of({**healthy(), "/api/v1/pods": [waiting]})
    command = printed.out.partition("kubectl")[2].partition("\n\n")[0].replace("\\\n", "").split()
    assert command == ["-n", "n" * 60, "delete", "pod", "p" * 60]
    assert too_wide(printed.out) == []


def test_a_check_is_explained_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--explain", "webhook-mute"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("webhook-mute (warning)\n") and "fails open" in printed


def test_progress_is_shown_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.output.terminal, "_EVERY_S", 0.01)
    stream = StringIO()
    with Progress(stream, "halfcard doctor") as progress:
        progress.say("reading pods")
        wait_until(lambda: "halfcard doctor: reading pods\n" in stream.getvalue(), what="a line")


def test_a_kubectl_plugin_names_itself_as_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [f"{os.sep}usr{os.sep}bin{os.sep}kubectl-halfcard"])
    with pytest.raises(SystemExit):
        main(["doctor", "--help"])
    assert capsys.readouterr().out.startswith("usage: kubectl halfcard doctor ")
