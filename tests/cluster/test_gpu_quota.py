"""GpuQuotas on a real API server: what is reserved, counted, refused and released."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.__main__ import main as halfcard
from devcluster.services.quota_installation import QuotaInstallation, cluster_with_quotas, quota, refusal
from halfcard.quota.ledger import used
from tests.builders import pod

from .manifests import complete, share, workload


@pytest.fixture(scope="module")
def quotas() -> Iterator[QuotaInstallation]:
    with cluster_with_quotas() as service:
        yield service


@pytest.fixture
def team(quotas: QuotaInstallation, request: pytest.FixtureRequest) -> str:
    return quotas.cluster.create_namespace(f"team-{abs(hash(request.node.name)) % 10**8}")


def test_a_pod_that_exceeds_the_quota_is_refused_with_numbers(quotas: QuotaInstallation, team: str) -> None:
    ledger = quotas.allow(team, hard={"cores": 100, "memory": "20Gi"})
    for name in "abc":
        quotas.webhook.create(team, share(name)).must()
    message = refusal(quotas.webhook.create(team, share("d")))
    assert f"exceeded quota: {team}/gpu, requested: cores=30, used: cores=90, limited: cores=100" in message
    assert "(20 more needed: 0.30 card asked, 0.10 card free)" in message
    quotas.cluster.wait_until(lambda: not quotas.ledger(ledger).reservations, what="the reservations to be settled")
    assert quotas.ledger(ledger).committed == {"cores": 90, "memory": 15 * 1024, "shares": 3}


def test_a_deleted_pod_frees_its_part_of_the_quota(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"cards": 1})
    whole = complete(pod("whole").asks(core=100))
    quotas.webhook.create(team, whole).must()
    another = complete(pod("another").asks(core=100))
    assert "cards=1 (1 more needed: 1 whole card asked, 0 whole cards free)" in refusal(
        quotas.webhook.create(team, another)
    )
    quotas.cluster.request("DELETE", f"/api/v1/namespaces/{team}/pods/whole", {"gracePeriodSeconds": 0}).must()
    quotas.cluster.wait_until(lambda: quotas.webhook.create(team, another).ok, what="the quota to be free again")


def test_a_pod_that_hangs_in_its_deletion_is_charged_only_while_its_node_answers(
    quotas: QuotaInstallation, team: str
) -> None:
    quotas.allow(team, hard={"cores": 30})
    quotas.cluster.add_node(node := f"node-of-{team}", {})
    quotas.webhook.create(team, share("hangs")).must()
    path = f"/api/v1/namespaces/{team}/pods/hangs"
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "hangs"}, "target": target}
    quotas.cluster.request("POST", f"{path}/binding", binding).must()
    quotas.cluster.request("DELETE", path, {"gracePeriodSeconds": 1}).must()
    for ready, used_cores in (("True", "30/30"), ("False", "0/30"), ("True", "30/30"), ("Unknown", "0/30")):
        conditions = [{"type": "Ready", "status": ready, "reason": "Test", "message": ""}]
        quotas.cluster.client.merge(
            quotas.cluster.admin, f"/api/v1/nodes/{node}/status", {"status": {"conditions": conditions}}
        )
        quotas.cluster.wait_until(
            lambda expected=used_cores: quotas.status(team).get("cores") == expected,  # type: ignore[misc]
            what=f"cores={used_cores} while Ready is {ready}",
        )
    assert "deletionTimestamp" in quotas.cluster.request("GET", path).must()["metadata"]
    quotas.webhook.create(team, share("next")).must()


def test_a_dry_run_is_checked_and_charges_nothing(quotas: QuotaInstallation, team: str) -> None:
    ledger = quotas.allow(team, hard={"shares": 1})
    for _ in range(3):
        quotas.webhook.create(team, share("dry"), dry_run=True).must()
    assert used(quotas.ledger(ledger)) == {}
    quotas.webhook.create(team, share("real")).must()
    quotas.cluster.wait_until(lambda: not quotas.ledger(ledger).reservations, what="the reservation to be settled")
    assert "shares=1" in refusal(quotas.webhook.create(team, share("dry"), dry_run=True))


def test_pods_older_than_the_quota_are_counted_and_not_evicted(quotas: QuotaInstallation, team: str) -> None:
    for name in "abc":
        quotas.webhook.create(team, share(name)).must()
    quotas.allow(team, hard={"cores": 60})
    quotas.cluster.wait_until(lambda: quotas.status(team).get("cores") == "90/60", what="the status")
    status = quotas.status(team)
    exceeded = next(each for each in status["conditions"] if each["type"] == "Exceeded")
    assert (exceeded["status"], exceeded["message"].split(":")[0]) == ("True", "over by cores=30")
    assert "used: cores=90, limited: cores=60" in refusal(quotas.webhook.create(team, share("d")))
    printed = quotas.webhook.kubectl(team, "get", "gpuquota").stdout.splitlines()
    assert printed[0].split() == ["NAME", "CARDS", "SHARES", "CORES", "MEMORY", "AGE"]
    assert printed[1].split()[:5] == ["gpu", "0/-", "3/-", "90/60", "15Gi/-"]


def test_several_namespaces_share_one_budget(quotas: QuotaInstallation, team: str) -> None:
    other = quotas.cluster.create_namespace(f"{team}-other")
    quotas.cluster.kubectl("label", "namespace", other, f"project={team}")
    ledger = quotas.allow_together(
        team,
        hard={"cores": 60},
        namespaces={"names": [team], "selector": {"matchLabels": {"project": team}}},
    )
    quotas.webhook.create(team, share("a")).must()
    quotas.webhook.create(other, share("a")).must()
    for namespace in (team, other):
        assert f"exceeded quota: {team}, requested: cores=30" in refusal(quotas.webhook.create(namespace, share("b")))
    quotas.cluster.wait_until(lambda: not quotas.ledger(ledger).reservations, what="the reservations to be settled")
    assert quotas.ledger(ledger).committed["cores"] == 60


def test_each_user_is_limited_by_the_quota_per_label(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"cores": 100}, perLabel={"key": "user", "hard": {"cores": 30}})

    def pod_of(user: str, name: str) -> dict[str, object]:
        item = share(name)
        item["metadata"]["labels"] = {"user": user}
        return item

    quotas.webhook.create(team, pod_of("alice", "a")).must()
    message = refusal(quotas.webhook.create(team, pod_of("alice", "b")))
    assert (
        "requested: cores per user=alice=30, used: cores per user=alice=30, limited: cores per user=alice=30" in message
    )
    quotas.webhook.create(team, pod_of("bob", "b")).must()
    quotas.webhook.create(team, share("unlabelled")).must()
    assert "cores=30, used: cores=90, limited: cores=100" in refusal(quotas.webhook.create(team, pod_of("carol", "c")))


def test_a_pod_refused_by_one_budget_is_not_charged_to_another(quotas: QuotaInstallation, team: str) -> None:
    wide = quotas.allow(team, "a-wide", hard={"cores": 1000})
    quotas.allow(team, "b-narrow", hard={"shares": 0})
    message = refusal(quotas.webhook.create(team, share("a")))
    assert f"exceeded quota: {team}/b-narrow, requested: shares=1, used: shares=0, limited: shares=0" in message
    quotas.cluster.wait_until(
        lambda: used(quotas.ledger(wide)) == {}, what="the reservation to be released", seconds=10
    )


def test_a_reservation_whose_pod_native_quota_refuses_is_released(quotas: QuotaInstallation, team: str) -> None:
    """The API server counts last: by then the reservation has been made, and no call reports the refusal."""
    ledger = quotas.allow(team, hard={"cores": 100})
    native = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    assert quotas.webhook.kubectl(team, "create", "-f-", item=native).code == 0
    quotas.cluster.wait_until(
        lambda: "status" in quotas.webhook.get(team, "resourcequota", "none"), what="native quota to be counted"
    )
    assert "exceeded quota: none" in refusal(quotas.webhook.create(team, share("a")))
    assert used(quotas.ledger(ledger))["cores"] == 30
    quotas.cluster.wait_until(lambda: used(quotas.ledger(ledger)) == {}, what="the reservation to expire", seconds=120)


def test_a_quota_reports_how_many_pods_it_refused_and_the_last_one(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"cores": 30})
    quotas.webhook.create(team, share("first")).must()
    for name in "abc":
        refusal(quotas.webhook.create(team, share(name)))

    def has_event() -> bool:
        printed = quotas.webhook.kubectl(team, "describe", "gpuquota", "gpu").stdout
        return (
            "QuotaExceeded" in printed and "(x3 over" in printed and f"{team}/c: exceeded quota: {team}/gpu" in printed
        )

    quotas.cluster.wait_until(has_event, what="the event of the quota")
    counted = quotas.webhook.replicas[0].status("/metrics")[1]
    assert f'halfcard_quota_refusals_total{{namespace="{team}",quota="{team}/gpu"}} 3.0' in counted


def test_a_deployment_gets_an_event_for_pods_its_replica_set_cannot_create(
    quotas: QuotaInstallation, team: str
) -> None:
    quotas.allow(team, hard={"cores": 30})
    item = workload("Deployment", "web", share("p"))
    item["spec"]["replicas"] = 3
    quotas.webhook.create(team, item).must()

    def has_event() -> bool:
        printed = quotas.webhook.kubectl(team, "describe", "deployment", "web").stdout
        return "QuotaExceeded" in printed and f"exceeded quota: {team}/gpu" in printed and "pods of web-" in printed

    quotas.cluster.wait_until(has_event, what="the event of the Deployment")


def test_a_workload_whose_pods_do_not_all_fit_gets_a_warning(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"cores": 100})
    many = workload("Deployment", "many", share("x"))
    many["spec"]["replicas"] = 5
    done = quotas.webhook.kubectl(team, "create", "-f-", item=many)
    assert done.code == 0
    assert f"Warning: {team}/gpu: only 3 of 5 pods fit: cores=100 free" in done.stderr


def test_the_owner_of_refused_pods_gets_an_event(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"shares": 1})
    assert quotas.webhook.kubectl(team, "create", "-f-", item=workload("ReplicaSet", "two", share("x"))).code == 0
    quotas.webhook.kubectl(team, "scale", "rs/two", "--replicas=2")

    def has_event() -> bool:
        events = quotas.webhook.kubectl(team, "get", "events", "-o=json").stdout
        messages = [each["message"] for each in json.loads(events)["items"] if each["reason"] == "FailedCreate"]
        return any(f"exceeded quota: {team}/gpu, requested: shares=1" in message for message in messages)

    quotas.cluster.wait_until(has_event, what="the event of the ReplicaSet")


@pytest.mark.parametrize(("kind", "attempts"), [("ReplicaSet", 11), ("StatefulSet", 11), ("Job", 4)])
def test_controllers_retry_as_soon_as_the_quota_allows(
    quotas: QuotaInstallation, team: str, kind: str, attempts: int
) -> None:
    """After this many attempts the controller's own backoff would be longer than ten seconds."""
    quotas.allow(team, hard={"shares": 1})
    quotas.webhook.create(team, share("first")).must()
    assert quotas.webhook.kubectl(team, "create", "-f-", item=workload(kind, "waits", share("x"))).code == 0

    def refused() -> int:
        events = json.loads(quotas.webhook.kubectl(team, "get", "events", "-o=json").stdout)["items"]
        return sum(each.get("count") or 1 for each in events if each["reason"] == "FailedCreate")

    quotas.cluster.wait_until(lambda: refused() >= attempts, what="a controller with a long backoff", seconds=60)
    quotas.cluster.request("DELETE", f"/api/v1/namespaces/{team}/pods/first", {"gracePeriodSeconds": 0}).must()
    quotas.cluster.wait_until(
        lambda: bool(json.loads(quotas.webhook.kubectl(team, "get", "pods", "-o=json").stdout)["items"]),
        what="the pod that waited",
        seconds=9,
    )


def test_a_recreated_quota_counts_existing_pods_again(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"cores": 30})
    quotas.webhook.create(team, share("a")).must()
    assert quotas.webhook.kubectl(team, "delete", "gpuquota", "gpu").code == 0
    quotas.cluster.wait_until(lambda: quotas.webhook.create(team, share("b")).ok, what="the quota to be gone")
    quotas.allow(team, hard={"cores": 60})
    assert "used: cores=60, limited: cores=60" in refusal(quotas.webhook.create(team, share("c")))


def test_the_ledger_of_a_deleted_quota_is_deleted(quotas: QuotaInstallation, team: str) -> None:
    ledger = quotas.allow(team, hard={"cores": 30})
    assert quotas.webhook.kubectl(team, "delete", "gpuquota", "gpu").code == 0
    path = f"/api/v1/namespaces/halfcard-system/configmaps/{ledger}"
    quotas.cluster.wait_until(
        lambda: quotas.cluster.request("GET", path).status == 404, what="the ledger to be deleted"
    )


def test_tenants_see_their_usage_and_whether_a_pod_would_fit(
    quotas: QuotaInstallation, team: str, capsys: pytest.CaptureFixture[str]
) -> None:
    quotas.allow(team, hard={"cores": 100, "memory": "10Gi"})
    quotas.webhook.create(team, share("notebook")).must()
    quotas.cluster.wait_until(lambda: quotas.status(team).get("pods") == 1, what="the pod to be counted")
    alice = quotas.cluster.tenant(team, "alice")

    def explain(*arguments: str) -> tuple[int, str]:
        code = halfcard(["quota", "explain", team, "--kubeconfig", str(alice.kubeconfig), *arguments])
        return code, capsys.readouterr().out

    quotas.cluster.wait_until(lambda: explain()[0] == 0, what="the aggregated rights of viewers")
    code, printed = explain("--pod", "cores=30,memory=6Gi,shares=1")
    assert code == 1
    assert [line.split() for line in printed.splitlines()[:6]] == [
        ["GpuQuota", f"{team}/gpu"],
        ["USED", "ALLOWED", "FREE"],
        ["cores", "30", "100", "70"],
        ["memory", "5Gi", "10Gi", "5Gi"],
        ["cards", "0", "-", "-"],
        ["shares", "1", "-", "-"],
    ]
    assert f"{team}/notebook holds cores=30 memory=5Gi shares=1" in printed
    assert "cannot be read" not in printed  # what others share with the team is in its GpuQuotaUsages
    assert f"a pod like this would be refused: exceeded quota: {team}/gpu, requested: memory=6Gi" in " ".join(
        printed.split()
    )
    assert max(map(len, printed.splitlines())) <= 100
    code, printed = explain("--pod", "cores=30", "-o", "json")
    assert code == 0 and json.loads(printed)["quotas"][0]["free"] == {"cores": 70, "memory": 5120}


def test_the_quotas_of_the_page_work_as_shown(quotas: QuotaInstallation) -> None:
    page = (Path(__file__).parents[2] / "docs" / "quota.md").read_text()
    team = quotas.cluster.create_namespace("team-a")
    manifests = [each for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "kind:" in each]
    assert len(manifests) >= 6  # beside settings
    for manifest in manifests:
        done = quotas.cluster.kubectl("apply", "-f-", stdin=manifest)
        assert done.code == 0, done.stderr
    quotas.cluster.wait_until(lambda: quotas.status(team).get("cores") == "0/800", what="the quota to be counted")
    for name in "abc":
        item = share(name)
        item["metadata"]["labels"] = {"team.example/user": name}
        quotas.cluster.wait_until(lambda each=item: quotas.webhook.create(team, each).ok, what=name)  # type: ignore[misc]
    quotas.cluster.wait_until(lambda: quotas.status(team).get("pods") == 3, what="the pods to be counted")
    example = re.search(r"(NAME +CARDS.*?)\n(gpu .*?)\n", page)
    assert example is not None
    lines = quotas.webhook.kubectl(team, "get", "gpuquota", "gpu").stdout.splitlines()
    assert [line.split()[:5] for line in lines] == [line.split()[:5] for line in example.groups()]


INVALID_SPECS = {
    "no limit at all": ({}, "a quota needs a limit"),
    "a negative amount": ({"hard": {"cores": -1}}, "greater than or equal to 0"),
    "no amount": ({"hard": {"memory": "lots"}}, "an amount such as 64Gi"),
    "negative memory": ({"hard": {"memory": "-1Gi"}}, "not below 0"),
    "half a card in whole cards": ({"hard": {"cards": 0.5}}, "must be of type integer"),
    "an empty list": ({"hard": {}}, "at least 1 properties"),
    "a model's name that no card has": ({"byModel": {"T4=": {"cards": 1}}}, "letters, digits, spaces"),
    "an unknown value of onExceeded": ({"hard": {"cards": 1}, "onExceeded": "Wait"}, "supported values"),
    "borrowing without a gate": ({"hard": {"cards": 1}, "borrowing": {"cohort": "c"}}, "set hard and onExceeded: Gate"),
}


@pytest.mark.parametrize(("spec", "message"), INVALID_SPECS.values(), ids=INVALID_SPECS)
def test_an_invalid_quota_is_refused_by_the_api_server(
    quotas: QuotaInstallation, team: str, spec: dict[str, object], message: str
) -> None:
    done = quotas.webhook.kubectl(team, "create", "-f-", item=quota("odd", spec, team))
    assert done.code == 1 and message in done.stderr


def test_a_cluster_quota_without_namespaces_is_refused(quotas: QuotaInstallation) -> None:
    done = quotas.webhook.kubectl("default", "create", "-f-", item=quota("odd", {"hard": {"cores": 1}}))
    assert done.code == 1 and "namespaces is empty" in done.stderr


def test_tenants_have_no_access_to_ledgers(quotas: QuotaInstallation, team: str) -> None:
    alice = quotas.cluster.tenant(team, "alice")
    answer = quotas.cluster.request("GET", "/api/v1/namespaces/halfcard-system/configmaps", user=alice)
    assert answer.status == 403


# --- the gate ---------------------------------------------------------------------------------------------------------


def gated_pods(quotas: QuotaInstallation, team: str) -> set[str]:
    """Returns the names of the gated pods."""
    pods = quotas.cluster.request("GET", f"/api/v1/namespaces/{team}/pods").must()["items"]
    return {each["metadata"]["name"] for each in pods if each["spec"].get("schedulingGates")}


def reasons(quotas: QuotaInstallation, team: str) -> dict[str, str]:
    """Returns what the Events of pods say that they wait for."""
    found = quotas.cluster.request("GET", f"/api/v1/namespaces/{team}/events").must()["items"]
    return {each["involvedObject"]["name"]: each["message"] for each in found if each["reason"] == "WaitsForQuota"}


def delete(quotas: QuotaInstallation, team: str, name: str) -> None:
    quotas.cluster.request("DELETE", f"/api/v1/namespaces/{team}/pods/{name}", {"gracePeriodSeconds": 0}).must()


def test_gated_pods_are_released_in_order(quotas: QuotaInstallation, team: str) -> None:
    ledger = quotas.allow(team, hard={"cores": 60}, onExceeded="Gate")
    for name in "abcd":
        quotas.webhook.create(team, share(name)).must()
        quotas.cluster.wait_until(
            lambda: len(gated_pods(quotas, team)) == max(0, "abcd".index(name) - 1),  # noqa: B023
            what=f"{name} to be released or to wait",
        )
    assert gated_pods(quotas, team) == {"c", "d"}
    quotas.cluster.wait_until(lambda: quotas.status(team).get("waiting") == 2, what="the status")
    assert quotas.ledger(ledger).hard == {"cores": 60}
    first = f"next in the queue: exceeded quota: {team}/gpu, requested: cores=30, used: cores=60, limited: cores=60"
    quotas.cluster.wait_until(lambda: first in reasons(quotas, team).get("c", ""), what="the Event of the first")
    behind = f"behind pod {team}/c, which waits for the same of quota {team}/gpu: cores"
    quotas.cluster.wait_until(lambda: reasons(quotas, team).get("d") == behind, what="the Event of the second")
    delete(quotas, team, "a")
    quotas.cluster.wait_until(lambda: gated_pods(quotas, team) == {"d"}, what="c to be released")
    quotas.cluster.wait_until(lambda: first in reasons(quotas, team)["d"], what="the Event of the new first")
    quotas.cluster.wait_until(lambda: quotas.status(team).get("cores") == "60/60", what="the status")


@pytest.mark.parametrize("on_exceeded", ["Deny", "Gate"])
def test_a_pod_that_lacks_room_in_its_teams_quota_keeps_no_other_team_waiting(
    quotas: QuotaInstallation, team: str, on_exceeded: str
) -> None:
    other = quotas.cluster.create_namespace(f"{team}-other")
    ledger = quotas.allow_together(
        team, hard={"cards": 100}, namespaces={"names": [team, other]}, onExceeded=on_exceeded
    )
    quotas.allow(team, hard={"cards": 1}, onExceeded="Gate")
    quotas.allow(other, hard={"cards": 5}, onExceeded="Gate")
    for name in "ab":
        quotas.webhook.create(team, complete(pod(name).asks(core=100))).must()
    quotas.cluster.wait_until(lambda: len(gated_pods(quotas, team)) == 1, what="the team's only card to be used")
    for name in "abc":
        quotas.webhook.create(other, complete(pod(name).asks(core=100))).must()
    quotas.cluster.wait_until(lambda: not gated_pods(quotas, other), what="the pods of the other team to be released")
    (name,) = gated_pods(quotas, team)
    quotas.cluster.wait_until(lambda: name in reasons(quotas, team), what="the Event of the pod that waits")
    assert f"exceeded quota: {team}/gpu, requested: cards=1, used: cards=1" in reasons(quotas, team)[name]
    assert used(quotas.ledger(ledger))["cards"] == 4


def test_a_user_who_may_edit_pods_cannot_remove_the_gate(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"cores": 30}, onExceeded="Gate")
    for name in "ab":
        quotas.webhook.create(team, share(name)).must()
    quotas.cluster.wait_until(lambda: len(gated_pods(quotas, team)) == 1, what="one to be released")
    (name,) = gated_pods(quotas, team)
    patch = {"spec": {"schedulingGates": None}}
    done = quotas.webhook.kubectl(team, "patch", "pod", name, "--type=merge", "-p", json.dumps(patch))
    assert "Warning: [HC028] halfcard.dev/quota stays" in done.stderr and gated_pods(quotas, team) == {name}
    labelled = quotas.webhook.kubectl(team, "label", "pod", name, "note=mine")
    assert labelled.code == 0, labelled.stderr


def test_a_pod_that_waits_is_replaced_by_its_own_file(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"shares": 1}, onExceeded="Gate")
    quotas.webhook.create(team, share("first")).must()
    quotas.cluster.wait_until(lambda: not gated_pods(quotas, team), what="the first to be released")
    defaults = {"automountServiceAccountToken": False, "serviceAccountName": "default"}
    item = complete(pod("waits").asks(core="0.3", memory="5Gi").specified(**defaults))
    quotas.webhook.create(team, item).must()
    replaced = quotas.webhook.kubectl(team, "replace", "-f-", item=item)
    assert replaced.code == 0, replaced.stderr
    assert gated_pods(quotas, team) == {"waits"}


def test_a_pod_larger_than_the_whole_quota_is_refused_and_not_gated(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"cores": 20}, onExceeded="Gate")
    assert "used: cores=0, limited: cores=20" in refusal(quotas.webhook.create(team, share("large")))


def test_the_gate_stays_exact_while_the_leader_of_the_quota_service_is_killed(
    quotas: QuotaInstallation, team: str
) -> None:
    ledger = quotas.allow(team, hard={"cores": 90}, onExceeded="Gate")
    second = quotas.add_replica()
    leading = quotas.wait_led()
    for number in range(8):
        quotas.webhook.create(team, share(f"p{number}")).must()
        if number == 3:
            leading.program.kill()
            quotas.replicas.remove(leading)
    assert second is not leading
    quotas.wait_led()
    quotas.cluster.wait_until(lambda: len(gated_pods(quotas, team)) == 5, what="three to be released", seconds=60)
    quotas.cluster.wait_until(
        lambda: not quotas.ledger(ledger).reservations, what="the reservations to be settled", seconds=90
    )
    assert used(quotas.ledger(ledger))["cores"] == 90


def test_a_quota_lends_unused_amounts_and_reclaims_them_first(
    quotas: QuotaInstallation, team: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = quotas.cluster.create_namespace(f"{team}-other")
    terms = {"cohort": team, "lendingLimit": {"cores": 40}}
    lender = quotas.allow(team, hard={"cores": 60}, onExceeded="Gate", borrowing=terms)
    borrower = quotas.allow(other, hard={"cores": 30}, onExceeded="Gate", borrowing={"cohort": team})
    for name in "abc":
        quotas.webhook.create(other, share(name)).must()
    quotas.cluster.wait_until(
        lambda: len(gated_pods(quotas, other)) == 1, what="one to be released with a borrowed amount"
    )
    assert quotas.ledger(lender).lent == {borrower: {"cores": 30}}, "another 30 would exceed the lending limit"
    quotas.cluster.wait_until(lambda: quotas.status(other).get("cores") == "60/30", what="the status")
    assert quotas.status(other)["borrowed"] == [{"quota": f"{team}/gpu", "cores": "30"}]
    assert halfcard(["quota", "explain", team, "--kubeconfig", str(quotas.cluster.admin.kubeconfig)]) == 0
    assert f"lends cores=30 to {other}/gpu" in capsys.readouterr().out

    quotas.webhook.create(team, share("own")).must()
    quotas.webhook.create(team, share("more")).must()
    quotas.cluster.wait_until(lambda: gated_pods(quotas, team) == {"more"}, what="its own amount to be used")
    (last,) = gated_pods(quotas, other)
    delete(quotas, other, next(name for name in "abc" if name != last))
    quotas.cluster.wait_until(lambda: not gated_pods(quotas, team), what="the lent amount to come back")
    assert gated_pods(quotas, other) == {last}, "although it has waited for longer"
    assert quotas.ledger(lender).lent == {} and quotas.ledger(borrower).borrowed == {}


def test_deleting_a_quota_releases_its_gated_pods(quotas: QuotaInstallation, team: str) -> None:
    quotas.allow(team, hard={"cores": 30}, onExceeded="Gate")
    for name in "abc":
        quotas.webhook.create(team, share(name)).must()
    quotas.cluster.wait_until(lambda: len(gated_pods(quotas, team)) == 2, what="one to be released")
    assert quotas.webhook.kubectl(team, "delete", "gpuquota", "gpu").code == 0
    quotas.cluster.wait_until(lambda: not gated_pods(quotas, team), what="all to be released")
